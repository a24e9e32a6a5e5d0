package pydelta.rule;

import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.GlobalLimit;
import org.apache.spark.sql.catalyst.plans.logical.LocalLimit;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.Repartition;
import org.apache.spark.sql.catalyst.plans.logical.Sort;
import org.apache.spark.sql.catalyst.plans.logical.Window;
import org.apache.spark.sql.catalyst.plans.logical.WindowGroupLimit;
import org.apache.spark.sql.catalyst.trees.TreePattern;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import org.apache.spark.sql.internal.SQLConf;
import pydelta.scan.PrunedScan;
import pydelta.scan.PrunedSource;

/**
 * Runs a small query over one of our scans in one task, without a shuffle, if the scan is one task.
 *
 * Spark does not know that the rows of such a scan are in one place, and sends them to other tasks to group and sort them. A
 * coalesce to one partition says so, and moves no rows. Several tasks after a shuffle are better if a user's function in the
 * query may take long, if the query multiplies rows, or if the session sets the number of tasks.
 */
class OneTask {
  private OneTask() {}

  /** The same object if the query is not of this kind. */
  static LogicalPlan in(LogicalPlan plan, RuleStatus status) {
    if (!isEnabled() || plan.isStreaming()) return plan;
    try {
      if (!gathersRows(plan, status)) return plan;
      LogicalPlan together = together(plan);
      status.used(Switch.ONE_TASK);
      return together;
    } catch (Exception | LinkageError error) {
      if (error instanceof InterruptedException) Thread.currentThread().interrupt();
      status.failed(Switch.ONE_TASK, error, null);
      return plan;
    }
  }

  private static boolean isEnabled() {
    boolean wantsTasks = SQLConf.get().getConfString("spark.sql.leafNodeDefaultParallelism", null) != null;
    return !wantsTasks && Switch.isOn(Switch.ONE_TASK);
  }

  /** Whether the plan has a node that needs rows in one place, and one task may run all nodes above the scan. */
  private static boolean gathersRows(LogicalPlan plan, RuleStatus status) {
    if (hasFunctionsOfUsers(plan)) return false;
    boolean gathers = false;
    boolean limited = false;
    LogicalPlan node = plan;
    for (; !(node instanceof DataSourceV2ScanRelation); node = child(node)) {
      boolean limits = node instanceof GlobalLimit || node instanceof LocalLimit;
      boolean sorts = node instanceof Sort sort && sort.global();
      if (!limits && !(node instanceof Sort) && !isOfRows(node) && !isOfGroups(node)) return false;
      limited |= limits;
      gathers |= isOfGroups(node) || (sorts && !limited);  // Spark gathers the first rows of an order without a shuffle
    }
    return gathers && isOneTask(((DataSourceV2ScanRelation) node).scan(), status);
  }

  private static boolean hasFunctionsOfUsers(LogicalPlan plan) {
    return plan.containsPattern(TreePattern.PYTHON_UDF()) || plan.containsPattern(TreePattern.SCALA_UDF());
  }

  private static boolean isOfRows(LogicalPlan node) {
    return node instanceof Project || node instanceof Filter;
  }

  private static boolean isOfGroups(LogicalPlan node) {
    return node instanceof Aggregate || node instanceof Window || node instanceof WindowGroupLimit;
  }

  private static LogicalPlan child(LogicalPlan node) {
    return node.children().head();
  }

  private static boolean isOneTask(Scan scan, RuleStatus status) {
    if (!(scan instanceof PrunedScan pruned) || pruned.readSchema().isEmpty()) return false;
    PrunedSource source = pruned.source();
    if (!source.plan().isSmall()) {
      status.skipped(Switch.ONE_TASK, source.plan().whyNot(Switch.ONE_TASK));
      return false;
    }
    int tasks = source.readInfo().partitions().length();
    if (tasks != 1) status.skipped(Switch.ONE_TASK, "the scan has " + tasks + " tasks");
    return tasks == 1;
  }

  /** The plan with one partition for the part that only filters and projects the scan's rows. */
  private static LogicalPlan together(LogicalPlan node) {
    if (isRowsOfScan(node)) return new Repartition(1, false, node);
    LogicalPlan child = child(node);
    return NodeCopy.with(node, new NodeCopy.Change(child, together(child)));
  }

  private static boolean isRowsOfScan(LogicalPlan node) {
    while (isOfRows(node)) node = child(node);
    return node instanceof DataSourceV2ScanRelation;
  }
}
