package pydelta.rule;

import org.apache.spark.sql.catalyst.plans.logical.ArrowEvalPython;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import org.apache.spark.sql.internal.SQLConf;
import pydelta.scan.PrunedScan;

/**
 * Gives rows to queries with Python UDFs on Spark 4.2.
 *
 * With the setting below, which is on unless a session turns it off, Spark 4.2 never ends a query whose Python UDF takes a column
 * of a columnar scan that is not Arrow's: one of Spark's Parquet reader neither. Spark has planned the UDFs of a query by the time
 * that the rule runs.
 */
class ColumnsUnderUdfs extends scala.runtime.AbstractPartialFunction {
  private static final String UDF_INPUT_CONF = "spark.sql.execution.arrow.pythonUDF.columnarInput.enabled";

  private ColumnsUnderUdfs() {}

  /** Whether a scan of the plan could be one that the query hangs on. */
  static boolean hang(LogicalPlan plan) {
    return org.apache.spark.package$.MODULE$.SPARK_VERSION().startsWith("4.2.")
        && "true".equalsIgnoreCase(SQLConf.get().getConfString(UDF_INPUT_CONF, "true").trim())
        && hasUdf(plan);
  }

  /** The plan with rows where it has columns: subqueries that became joins bring scans along that were planned without the UDFs. */
  static LogicalPlan inRows(LogicalPlan plan) {
    return plan.transformDown(new ColumnsUnderUdfs());
  }

  private static boolean hasUdf(LogicalPlan plan) {
    if (plan instanceof ArrowEvalPython) return true;
    scala.collection.immutable.Seq children = plan.children();
    for (int i = 0; i < children.length(); i++) {
      if (hasUdf((LogicalPlan) children.apply(i))) return true;
    }
    return false;
  }

  public boolean isDefinedAt(Object node) {
    if (!(node instanceof DataSourceV2ScanRelation relation)) return false;
    return relation.scan() instanceof PrunedScan && ((PrunedScan) relation.scan()).mayBeColumnar();
  }

  public Object applyOrElse(Object node, scala.Function1 otherwise) {
    if (!isDefinedAt(node)) return otherwise.apply(node);
    DataSourceV2ScanRelation relation = (DataSourceV2ScanRelation) node;
    PrunedScan scan = (PrunedScan) relation.scan();
    return NodeCopy.with(relation, new Object[] {scan}, new Object[] {scan.inRows()});
  }
}
