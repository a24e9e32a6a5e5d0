package pydelta.pruning;

import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.SubqueryExpression$;
import org.apache.spark.sql.catalyst.optimizer.ConvertToLocalRelation$;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LocalRelation;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.execution.AggregatingAccumulator$;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.util.AccumulatorV2;
import scala.collection.immutable.Seq;

/**
 * Answers aggregates of our scans from the table's log, where the source knows what they need of every file.
 *
 * Under the aggregate, below filters and projections that stay, the scan becomes the source's answer: a row for each
 * combination of partition values, with numbers of rows, minima and maxima in columns of their own. An aggregate without
 * groups is then computed at once, and the query needs no job; one with groups is left to Spark. An aggregate that needs
 * anything else of the rows is left alone, and so is one whose answer fails.
 */
class LogAnswers extends scala.runtime.AbstractPartialFunction {
  static final String OPTION = "logAnswers";
  private static final String ENABLED_CONF = "spark.pydelta.logAnswers.enabled";

  private final RuleStatus status;
  private int count = 0;

  private LogAnswers(RuleStatus status) {
    this.status = status;
  }

  /** The plan with the answers in it; the same object if there are none. */
  static LogicalPlan in(LogicalPlan plan, RuleStatus status) {
    if ("false".equalsIgnoreCase(SQLConf.get().getConfString(ENABLED_CONF, "true").trim())) return plan;
    LogAnswers answers = new LogAnswers(status);
    LogicalPlan answered = (LogicalPlan) plan.transformDown(answers);
    return answers.count == 0 ? plan : folded(answered);
  }

  /** Spark's rule works from the top: what lies over a node that it has computed is left for its next run. */
  private static LogicalPlan folded(LogicalPlan plan) {
    LogicalPlan before = null;
    while (plan != before) {
      before = plan;
      plan = (LogicalPlan) ((Rule) ConvertToLocalRelation$.MODULE$).apply(plan);
    }
    return plan;
  }

  public boolean isDefinedAt(Object node) {
    return node instanceof Aggregate && scanBelow((Aggregate) node) != null;
  }

  public Object applyOrElse(Object node, scala.Function1 otherwise) {
    if (!isDefinedAt(node)) return otherwise.apply(node);
    Aggregate aggregate = (Aggregate) node;
    try {
      LogicalPlan answered = answered(aggregate);
      if (answered == null) return aggregate;
      count++;
      status.answered();
      return answered;
    } catch (Exception error) {
      return unanswered(aggregate, error);
    } catch (LinkageError error) {
      return unanswered(aggregate, error);
    }
  }

  private Object unanswered(Aggregate aggregate, Throwable error) {
    if (error instanceof InterruptedException) Thread.currentThread().interrupt();
    status.unanswered(error);
    return aggregate;
  }

  private static PrunedScan scanBelow(Aggregate aggregate) {
    DataSourceV2ScanRelation relation = relationBelow(aggregate);
    return relation == null ? null : (PrunedScan) relation.scan();
  }

  /** Our scan below the aggregate, with nothing between them but filters and projections; null if there is none. */
  static DataSourceV2ScanRelation relationBelow(Aggregate aggregate) {
    LogicalPlan node = aggregate.child();
    if (!node.deterministic()) return null;
    while (node instanceof Project || node instanceof Filter) node = (LogicalPlan) node.children().head();
    if (!(node instanceof DataSourceV2ScanRelation)) return null;
    DataSourceV2ScanRelation relation = (DataSourceV2ScanRelation) node;
    return relation.scan() instanceof PrunedScan ? relation : null;
  }

  /** Null if the aggregate needs more than the log may know, or the log does not know it. */
  private static LogicalPlan answered(Aggregate aggregate) throws Exception {
    PrunedScan scan = scanBelow(aggregate);
    if (!scan.mayAsk()) return null;
    LogQuestion question = new LogQuestion(aggregate.child());
    List results = question.rewritten(aggregate.aggregateExpressions());
    if (results == null) return null;
    Set needed = question.needed(results, aggregate.groupingExpressions());
    LogicalPlan known = known(aggregate.child(), question, needed, scan);
    if (known == null) return null;
    known = folded(known);
    Seq expressions = Lists.toScala(results);
    boolean once = aggregate.groupingExpressions().isEmpty() && question.isPlain() && known instanceof LocalRelation;
    return once && areComputable(results) ? computed(aggregate, expressions, (LocalRelation) known)
        : new Aggregate(aggregate.groupingExpressions(), expressions, known, aggregate.hint());
  }

  /** The plan below the aggregate over the answer in place of the scan, cut to the needed attributes; null if there is none. */
  private static LogicalPlan known(LogicalPlan node, LogQuestion question, Set needed, PrunedScan scan)
      throws Exception {
    if (node instanceof Filter) {
      Expression condition = ((Filter) node).condition();
      LogQuestion.addReferences(condition, needed);
      LogicalPlan child = known(((Filter) node).child(), question, needed, scan);
      return child == null ? null : new Filter(condition, child);
    }
    if (node instanceof Project) {
      List kept = new ArrayList();
      Set below = LogQuestion.none();
      Seq all = ((Project) node).projectList();
      for (int i = 0; i < all.length(); i++) {
        NamedExpression named = (NamedExpression) all.apply(i);
        if (!needed.contains(named.exprId())) continue;
        kept.add(named);
        LogQuestion.addReferences((Expression) named, below);
      }
      LogicalPlan child = known(((Project) node).child(), question, below, scan);
      if (child == null) return null;
      kept.addAll(question.told());
      return new Project(Lists.toScala(kept), child);
    }
    return LogAnswer.relation(question, question.by(needed), scan);
  }

  /** Whether Spark need not run first: a subquery has no value before. */
  private static boolean areComputable(List results) {
    for (int i = 0; i < results.size(); i++) {
      Expression result = (Expression) results.get(i);
      if (!result.deterministic() || SubqueryExpression$.MODULE$.hasSubquery(result)) return false;
    }
    return true;
  }

  /** The aggregate's one row. */
  private static LogicalPlan computed(Aggregate aggregate, Seq expressions, LocalRelation known) {
    AccumulatorV2 sum = AggregatingAccumulator$.MODULE$.apply(expressions, known.output());
    for (int i = 0; i < known.data().length(); i++) sum.add(known.data().apply(i));
    List rows = new ArrayList();
    rows.add(((InternalRow) sum.value()).copy());
    return new LocalRelation(aggregate.output(), Lists.toScala(rows), false, (scala.Option) scala.None$.MODULE$);
  }
}
