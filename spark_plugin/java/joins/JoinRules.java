package pydelta.joins;

import java.util.HashMap;
import java.util.Iterator;
import java.util.Map;
import org.apache.spark.sql.catalyst.expressions.DynamicPruningSubquery;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.optimizer.BooleanSimplification$;
import org.apache.spark.sql.catalyst.optimizer.CostBasedJoinReorder$;
import org.apache.spark.sql.catalyst.optimizer.PruneFilters$;
import org.apache.spark.sql.catalyst.optimizer.PushDownPredicates$;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import org.apache.spark.sql.execution.dynamicpruning.CleanupDynamicPruningFilters$;
import org.apache.spark.sql.execution.dynamicpruning.PartitionPruning$;
import pydelta.rule.RuleStatus;
import scala.Option;

/**
 * What Spark's optimizer does with joins, done for our scans, whose sizes and partition columns were not known when it did.
 *
 * In its own order: joins are ordered by their cost, where the session wants that (spark.sql.cbo.joinReorder.enabled); then
 * comes dynamic partition pruning. What the rules of that add for other scans, or a second time, is taken out again.
 */
public class JoinRules extends scala.runtime.AbstractPartialFunction {
  /** As many as Spark's own optimizer makes of a batch of rules. */
  private static final int MOST_ROUNDS = 100;

  /** ExprId -> DynamicPruningSubquery, those that were there before. */
  private final Map known;
  private int added = 0;

  private JoinRules(Map known) {
    this.known = known;
  }

  /** The plan with other joins, and filters that joins will fill; the same object if there are none. */
  public static LogicalPlan in(LogicalPlan plan, RuleStatus status) {
    try {
      return has(Join.class, plan) ? filtered(run(CostBasedJoinReorder$.MODULE$, plan)) : plan;
    } catch (Exception error) {
      return asItWas(plan, error, status);
    } catch (LinkageError error) {
      return asItWas(plan, error, status);
    }
  }

  private static LogicalPlan asItWas(LogicalPlan plan, Throwable error, RuleStatus status) {
    if (error instanceof InterruptedException) Thread.currentThread().interrupt();
    status.withoutJoins(error);
    return plan;
  }

  private static LogicalPlan filtered(LogicalPlan plan) {
    LogicalPlan all = run(PartitionPruning$.MODULE$, plan);
    if (all == plan) return plan;
    JoinRules filters = new JoinRules(subqueries(plan));
    LogicalPlan ours = all.transformUp(filters);
    return filters.added == 0 ? plan : cleaned(pushedDown(ours));
  }

  private static boolean has(Class kind, LogicalPlan plan) {
    if (kind.isInstance(plan)) return true;
    for (int i = 0; i < plan.children().length(); i++) {
      if (has(kind, plan.children().apply(i))) return true;
    }
    return false;
  }

  private static LogicalPlan run(Object rule, LogicalPlan plan) {
    return (LogicalPlan) ((Rule) rule).apply(plan);
  }

  private static LogicalPlan pushedDown(LogicalPlan plan) {
    LogicalPlan before = null;
    for (int i = 0; i < MOST_ROUNDS && !plan.equals(before); i++) {
      before = plan;
      plan = run(PushDownPredicates$.MODULE$, plan);
    }
    return plan;
  }

  private static LogicalPlan cleaned(LogicalPlan plan) {
    LogicalPlan left = run(CleanupDynamicPruningFilters$.MODULE$, plan);
    return run(PruneFilters$.MODULE$, run(BooleanSimplification$.MODULE$, left));
  }

  // ---------------------------------------------------------------- what is added

  /** A filter that Spark's rule has just put there: it is nothing but one subquery. */
  public boolean isDefinedAt(Object node) {
    if (!(node instanceof Filter) || !(((Filter) node).condition() instanceof DynamicPruningSubquery)) return false;
    return !known.containsKey(((DynamicPruningSubquery) ((Filter) node).condition()).exprId());
  }

  public Object applyOrElse(Object node, scala.Function1 otherwise) {
    if (!isDefinedAt(node)) return otherwise.apply(node);
    Filter filter = (Filter) node;
    if (!isWanted((DynamicPruningSubquery) filter.condition(), filter.child())) return filter.child();
    added++;
    return filter;
  }

  private boolean isWanted(DynamicPruningSubquery subquery, LogicalPlan below) {
    Option scan = PartitionPruning$.MODULE$.getFilterableTableScan(subquery.pruningKey(), below);
    if (scan.isEmpty() || !(scan.get() instanceof DataSourceV2ScanRelation)) return false;
    DataSourceV2ScanRelation relation = (DataSourceV2ScanRelation) scan.get();
    if (!(relation.scan() instanceof JoinedScan)) return false;
    for (Iterator each = known.values().iterator(); each.hasNext();) {
      DynamicPruningSubquery before = (DynamicPruningSubquery) each.next();
      boolean same = before.pruningKey().references().subsetOf(relation.outputSet());
      if (same && before.buildQuery().sameResult(subquery.buildQuery())) return false;
    }
    return true;
  }

  private static Map subqueries(LogicalPlan plan) {
    Map found = new HashMap();
    collect(plan, found);
    return found;
  }

  private static void collect(LogicalPlan plan, Map found) {
    if (plan instanceof Filter) collect(((Filter) plan).condition(), found);
    for (int i = 0; i < plan.children().length(); i++) collect(plan.children().apply(i), found);
  }

  private static void collect(Expression expression, Map found) {
    if (expression instanceof DynamicPruningSubquery) {
      found.put(((DynamicPruningSubquery) expression).exprId(), expression);
    }
    for (int i = 0; i < expression.children().length(); i++) collect(expression.children().apply(i), found);
  }
}
