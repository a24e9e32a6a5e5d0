package pydelta.statements;

import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.List;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.parser.ParameterContext;
import org.apache.spark.sql.catalyst.plans.logical.CommandResult;
import org.apache.spark.sql.catalyst.plans.logical.LocalRelation;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.types.DataTypeUtils$;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.SparkPlan;
import pydelta.rule.Lists;
import scala.Option;
import scala.collection.immutable.IndexedSeq;
import scala.collection.immutable.Seq;

/**
 * A statement that Python may know, which StatementRouter puts into a plan. Spark's analyzer asks Python, once, as it calls
 * procedures. The result of Python replaces the statement, as a command's result with its types. If Python does not know the
 * statement, Spark's plan replaces it.
 */
class RoutedStatement extends LogicalPlan {
  private static final long serialVersionUID = 1;

  private final transient StatementRouter router;
  private final String text;
  private final transient ParameterContext parameters;
  private final transient LogicalPlan sparks;

  /** parameters: null for none. sparks: the plan of Spark's parser; null if it was not asked. */
  RoutedStatement(StatementRouter router, String text, ParameterContext parameters, LogicalPlan sparks) {
    this.router = router;
    this.text = text;
    this.parameters = parameters;
    this.sparks = sparks;
  }

  /** The rule that asks. */
  static class Asking extends Rule<LogicalPlan> {
    private final SparkSession session;

    private Asking(SparkSession session) {
      this.session = session;
    }

    /** Puts the rule before the others of a session. Raises if this Spark keeps them elsewhere. */
    static void addTo(SparkSession session) throws Exception {
      List<Rule<LogicalPlan>> rules = ResolutionRules.of(session);
      rules.add(0, new Asking(session));
      ResolutionRules.set(session, rules);
    }

    public LogicalPlan apply(LogicalPlan plan) {
      return plan instanceof RoutedStatement statement ? statement.resolve(session) : plan;
    }
  }

  private LogicalPlan resolve(SparkSession session) {
    ObjectNode request = JsonNodeFactory.instance.objectNode();
    request.put("statement", text);
    Dataset<Row> answer = DriverPython.ask(session, request, parameters);
    if (answer == null) {
      return session.sessionState().analyzer().execute(sparks == null ? router.parsed(text, parameters) : sparks);
    }
    ResultScan result = ResultScan.of(answer);
    Seq<Attribute> output = Lists.widened(DataTypeUtils$.MODULE$.toAttributes(result.readSchema()));
    Seq<InternalRow> rows = Lists.toScala(List.of(result.rows()));
    var relation = new LocalRelation(output, rows, false, Option.empty());
    SparkPlan physical = session.sessionState().planner().plan(relation).next();
    return new CommandResult(output, relation, physical, rows);
  }

  public boolean resolved() {
    return false;
  }

  public Seq<Attribute> output() {
    return Lists.toScala(List.of());
  }

  public Seq<LogicalPlan> children() {
    return Lists.toScala(List.of());
  }

  public LogicalPlan withNewChildrenInternal(IndexedSeq<LogicalPlan> none) {
    return this;
  }

  public int productArity() {
    return 1;
  }

  public Object productElement(int place) {
    return text;
  }

  public boolean canEqual(Object other) {
    return other instanceof RoutedStatement;
  }
}
