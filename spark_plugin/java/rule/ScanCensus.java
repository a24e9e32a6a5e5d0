package pydelta.rule;

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import org.apache.spark.sql.execution.datasources.v2.ScanBuilderHolder;
import pydelta.scan.PrunableTable;
import pydelta.scan.PrunedScan;

/** The numbers of a plan's scans: scans pruned by us, other scans, and scans that push-down should have planned but did not. */
record ScanCensus(int pruned, int others, int unplanned) {

  static ScanCensus of(LogicalPlan plan) {
    int pruned = 0;
    int others = 0;
    int unplanned = 0;
    for (LogicalPlan node : Trees.nodes(plan)) {
      if (node instanceof DataSourceV2ScanRelation relation) {
        if (relation.scan() instanceof PrunedScan) pruned++;
        else others++;
      } else if (node instanceof ScanBuilderHolder
          || node instanceof DataSourceV2Relation relation && relation.table() instanceof PrunableTable) {
        unplanned++;
      }
    }
    return new ScanCensus(pruned, others, unplanned);
  }

  public String toString() {
    return pruned + " pruned and " + others + " other";
  }
}
