package pydelta.rule;

import java.util.Collections;
import java.util.IdentityHashMap;
import java.util.Set;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.Generate;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.Sample;
import org.apache.spark.sql.catalyst.plans.logical.Sort;
import org.apache.spark.sql.catalyst.plans.logical.Union;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import pydelta.scan.ColumnarChoice;

/**
 * Scans whose division into tasks decides which rows a query returns: below `sample`, rand() or monotonically_increasing_id().
 *
 * Spark's Parquet reader divides a table in another way than Python does, and is chosen by the columns that are read. So a sample
 * with a fixed seed would have other rows when fewer columns are read. For these scans Python divides the files, always in the same
 * way.
 */
class TaskDependentRows {
  private static final String WHY = "the query draws or numbers rows by task, which must not depend on the columns";

  private final Set<LogicalPlan> scans = Collections.newSetFromMap(new IdentityHashMap<>());
  private final Set<LogicalPlan> scansOfUnions = Collections.newSetFromMap(new IdentityHashMap<>());

  private TaskDependentRows() {}

  /** The scans of a plan from which rows are drawn or numbered before they are joined, grouped or sent to other tasks. */
  static TaskDependentRows of(LogicalPlan plan) {
    var dependent = new TaskDependentRows();
    for (LogicalPlan node : Trees.nodes(plan)) {
      if (dependsOnTask(node)) dependent.addScansBelow(node, dependent.scans);
    }
    return dependent;
  }

  /**
   * How a scan is read. In rows below a union, because Spark compiles a union of rows into the sample, and then numbers its tasks
   * in another way than for columns.
   */
  ColumnarChoice reads(LogicalPlan scan, ColumnarChoice reads) {
    if (scansOfUnions.contains(scan)) return reads.inRows(WHY);
    return scans.contains(scan) ? reads.withoutParquet(WHY) : reads;
  }

  private static boolean dependsOnTask(LogicalPlan node) {
    return node instanceof Sample
        || Lists.toJava(node.expressions()).stream().anyMatch(expression -> !expression.deterministic());
  }

  private void addScansBelow(LogicalPlan node, Set<LogicalPlan> scans) {
    if (node instanceof DataSourceV2ScanRelation) scans.add(node);
    if (!keepsTasks(node)) return;
    Set<LogicalPlan> below = node instanceof Union ? scansOfUnions : scans;
    for (LogicalPlan child : Lists.toJava(node.children())) addScansBelow(child, below);
  }

  /** Whether the node leaves each row in the task that read it. */
  private static boolean keepsTasks(LogicalPlan node) {
    return node instanceof Project || node instanceof Filter || node instanceof Sample || node instanceof Generate
        || node instanceof Union || node instanceof Sort sort && !sort.global();
  }
}
