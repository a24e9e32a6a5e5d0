package pydelta.rule;

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import org.apache.spark.sql.execution.datasources.v2.ScanBuilderHolder;
import pydelta.scan.PrunableTable;
import pydelta.scan.PrunedScan;

/** Counts the scans of a plan: pruned by us, others, and those that push-down should have planned and did not. */
class ScanCensus extends scala.runtime.AbstractFunction1 {
  private int pruned = 0;
  private int others = 0;
  private int unplanned = 0;

  static ScanCensus of(LogicalPlan plan) {
    ScanCensus census = new ScanCensus();
    plan.foreach(census);
    return census;
  }

  int pruned() {
    return pruned;
  }

  int others() {
    return others;
  }

  int unplanned() {
    return unplanned;
  }

  public Object apply(Object node) {
    if (node instanceof DataSourceV2ScanRelation) {
      if (((DataSourceV2ScanRelation) node).scan() instanceof PrunedScan) pruned++;
      else others++;
    } else if (node instanceof ScanBuilderHolder) {
      unplanned++;
    } else if (node instanceof DataSourceV2Relation && ((DataSourceV2Relation) node).table() instanceof PrunableTable) {
      unplanned++;
    }
    return scala.runtime.BoxedUnit.UNIT;
  }

  public String toString() {
    return pruned + " pruned and " + others + " other";
  }
}
