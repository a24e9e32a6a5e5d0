package pydelta.joins;

import java.util.HashMap;
import java.util.Map;
import org.apache.spark.sql.catalyst.expressions.DynamicPruningSubquery;
import org.apache.spark.sql.catalyst.expressions.ExprId;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.optimizer.BooleanSimplification$;
import org.apache.spark.sql.catalyst.optimizer.CostBasedJoinReorder$;
import org.apache.spark.sql.catalyst.optimizer.PruneFilters$;
import org.apache.spark.sql.catalyst.optimizer.PushDownPredicates$;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import org.apache.spark.sql.execution.dynamicpruning.CleanupDynamicPruningFilters$;
import org.apache.spark.sql.execution.dynamicpruning.PartitionPruning$;
import pydelta.rule.RuleStatus;
import pydelta.rule.Trees;

/**
 * Applies Spark's optimizer rules for joins to our scans. Their sizes and partition columns were not known when Spark applied
 * these rules.
 *
 * The order is Spark's: joins are ordered by their cost, if the session enables that (spark.sql.cbo.joinReorder.enabled). Then
 * comes dynamic partition pruning. What its rules add for other scans, or a second time, is removed again.
 */
public class JoinRules {
  /** The number of rounds that Spark's own optimizer allows a batch of rules. */
  private static final int MOST_ROUNDS = 100;

  /** The filters that the plan had before, by their ids. */
  private final Map<ExprId, DynamicPruningSubquery> known;
  private int added = 0;

  private JoinRules(Map<ExprId, DynamicPruningSubquery> known) {
    this.known = known;
  }

  /** The plan with other joins, and with filters that get their values from joins; the same object if there are none. */
  public static LogicalPlan in(LogicalPlan plan, RuleStatus status) {
    try {
      return plan.exists(Join.class::isInstance) ? filtered(CostBasedJoinReorder$.MODULE$.apply(plan)) : plan;
    } catch (Exception | LinkageError error) {
      if (error instanceof InterruptedException) Thread.currentThread().interrupt();
      status.withoutJoins(error);
      return plan;
    }
  }

  private static LogicalPlan filtered(LogicalPlan plan) {
    LogicalPlan all = PartitionPruning$.MODULE$.apply(plan);
    if (all == plan) return plan;
    JoinRules filters = new JoinRules(subqueries(plan));
    LogicalPlan ours = all.transformUp(Trees.change(filters::withoutOtherFilters));
    return filters.added == 0 ? plan : cleaned(pushedDown(ours));
  }

  private static LogicalPlan pushedDown(LogicalPlan plan) {
    LogicalPlan before = null;
    for (int i = 0; i < MOST_ROUNDS && !plan.equals(before); i++) {
      before = plan;
      plan = PushDownPredicates$.MODULE$.apply(plan);
    }
    return plan;
  }

  private static LogicalPlan cleaned(LogicalPlan plan) {
    LogicalPlan withoutUnused = CleanupDynamicPruningFilters$.MODULE$.apply(plan);
    return PruneFilters$.MODULE$.apply(BooleanSimplification$.MODULE$.apply(withoutUnused));
  }

  // ---------------------------------------------------------------- what is added

  /**
   * Removes a filter that Spark's rule has just added, unless it prunes one of our scans. Such a filter consists of one
   * subquery.
   */
  private LogicalPlan withoutOtherFilters(LogicalPlan node) {
    if (!(node instanceof Filter filter) || !(filter.condition() instanceof DynamicPruningSubquery subquery)) return node;
    if (known.containsKey(subquery.exprId())) return node;
    if (!prunesOurScan(subquery, filter.child())) return filter.child();
    added++;
    return filter;
  }

  /** Whether the subquery prunes a scan of ours below, and no filter that the plan had before prunes it by the same query. */
  private boolean prunesOurScan(DynamicPruningSubquery subquery, LogicalPlan below) {
    var scan = PartitionPruning$.MODULE$.getFilterableTableScan(subquery.pruningKey(), below);
    if (scan.isEmpty() || !(scan.get() instanceof DataSourceV2ScanRelation relation)) return false;
    if (!(relation.scan() instanceof JoinedScan)) return false;
    return known.values().stream().noneMatch(before -> before.pruningKey().references().subsetOf(relation.outputSet())
        && before.buildQuery().sameResult(subquery.buildQuery()));
  }

  private static Map<ExprId, DynamicPruningSubquery> subqueries(LogicalPlan plan) {
    var subqueries = new HashMap<ExprId, DynamicPruningSubquery>();
    for (LogicalPlan node : Trees.nodes(plan)) {
      if (!(node instanceof Filter filter)) continue;
      for (Expression expression : Trees.nodes(filter.condition())) {
        if (expression instanceof DynamicPruningSubquery subquery) subqueries.put(subquery.exprId(), subquery);
      }
    }
    return subqueries;
  }
}
