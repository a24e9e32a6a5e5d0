package pydelta.aggregates;

import java.util.List;
import java.util.Set;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.ExprId;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.SubqueryExpression$;
import org.apache.spark.sql.catalyst.optimizer.ConvertToLocalRelation$;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.LocalRelation;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.AggregatingAccumulator$;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import pydelta.rule.Lists;
import pydelta.rule.RuleStatus;
import pydelta.rule.Switch;
import pydelta.scan.PrunedScan;
import scala.Option;

/**
 * Answers aggregates of our scans from the table's log, if the log has what they need of every file.
 *
 * The scan under the aggregate is replaced by the source's answer. Filters and projections between the two stay. The answer has a
 * row for each combination of partition values, and columns for row counts, minima and maxima. An aggregate without groups is
 * computed immediately, and the query needs no job. Spark computes one with groups. An aggregate that needs anything else of the
 * rows stays as it is, and so does one whose answer fails.
 */
public final class LogAnswers extends AggregateRule<LogQuestion> {
  public static final String OPTION = "logAnswers";

  private final RuleStatus status;

  private LogAnswers(RuleStatus status) {
    this.status = status;
  }

  /** The plan with the answers in it; the same object if there are none. */
  public static LogicalPlan in(LogicalPlan plan, RuleStatus status) {
    if (!Switch.isOn(Switch.LOG)) return plan;
    LogicalPlan answered = new LogAnswers(status).in(plan);
    return answered == plan ? plan : folded(answered);
  }

  /** Spark's rule works from the top: nodes above a node that it has computed wait for its next run. */
  private static LogicalPlan folded(LogicalPlan plan) {
    LogicalPlan before = null;
    while (plan != before) {
      before = plan;
      plan = ConvertToLocalRelation$.MODULE$.apply(plan);
    }
    return plan;
  }

  void done() {
    status.used(Switch.LOG);
  }

  void failed(Throwable error) {
    status.failed(Switch.LOG, error, null);
  }

  boolean keepsFilters() {
    return true;
  }

  /** Null if the aggregate needs more than the log can have, or if the log lacks it. */
  LogicalPlan replaced(Aggregate aggregate, DataSourceV2ScanRelation relation) throws Exception {
    if (!((PrunedScan) relation.scan()).mayAsk(Switch.LOG)) return null;
    LogQuestion question = new LogQuestion(aggregate.child());
    List<NamedExpression> results = question.rewritten(aggregate.aggregateExpressions());
    if (results == null) return null;
    Set<ExprId> needed = question.needed(results, aggregate.groupingExpressions());
    LogicalPlan known = below(aggregate.child(), question, needed, relation);
    if (known == null) return null;
    known = folded(known);
    boolean isOneRow = aggregate.groupingExpressions().isEmpty() && question.isPlain() && areComputable(results);
    if (isOneRow && known instanceof LocalRelation rows) return computed(aggregate, results, rows);
    return new Aggregate(aggregate.groupingExpressions(), Lists.toScala(results), known, aggregate.hint());
  }

  LogicalPlan inPlace(LogQuestion question, List<Attribute> by, DataSourceV2ScanRelation relation) throws Exception {
    return LogAnswer.relation(question, by, (PrunedScan) relation.scan());
  }

  /** Whether the results can be computed before Spark runs: a subquery has no value until then. */
  private static boolean areComputable(List<NamedExpression> results) {
    for (NamedExpression named : results) {
      Expression result = (Expression) named;
      if (!result.deterministic() || SubqueryExpression$.MODULE$.hasSubquery(result)) return false;
    }
    return true;
  }

  /** The aggregate's one row. */
  private static LogicalPlan computed(Aggregate aggregate, List<NamedExpression> results, LocalRelation known) {
    List<Expression> expressions = results.stream().map(Expression.class::cast).toList();
    var sum = AggregatingAccumulator$.MODULE$.apply(Lists.toScala(expressions), known.output());
    for (InternalRow row : Lists.toJava(known.data())) sum.add(row);
    return new LocalRelation(aggregate.output(), Lists.toScala(List.of(sum.value().copy())), false, Option.empty());
  }
}
