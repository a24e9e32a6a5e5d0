package pydelta.rule;

import org.apache.spark.sql.catalyst.plans.logical.ArrowEvalPython;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import org.apache.spark.sql.internal.SQLConf;
import pydelta.scan.PrunedScan;

/**
 * Makes scans return rows to queries with Python UDFs on Spark 4.2.
 *
 * With the setting below, which is on unless a session turns it off, Spark 4.2 never ends a query whose Python UDF takes a column
 * of a columnar scan that is not Arrow's. This holds for Spark's Parquet reader, too. When the rule runs, Spark has already
 * planned the UDFs of a query.
 */
class ColumnsUnderUdfs {
  private static final String UDF_INPUT_CONF = "spark.sql.execution.arrow.pythonUDF.columnarInput.enabled";

  private ColumnsUnderUdfs() {}

  /** Whether the plan has a scan that could block the query forever. */
  static boolean hang(LogicalPlan plan) {
    return org.apache.spark.package$.MODULE$.SPARK_VERSION().startsWith("4.2.")
        && "true".equalsIgnoreCase(SQLConf.get().getConfString(UDF_INPUT_CONF, "true").trim())
        && plan.exists(ArrowEvalPython.class::isInstance);
  }

  /** The plan with rows instead of columns: subqueries that became joins contain scans that were planned without the UDFs. */
  static LogicalPlan inRows(LogicalPlan plan) {
    return plan.transformDown(Trees.change(ColumnsUnderUdfs::nodeInRows));
  }

  private static LogicalPlan nodeInRows(LogicalPlan node) {
    if (!(node instanceof DataSourceV2ScanRelation relation)) return node;
    if (!(relation.scan() instanceof PrunedScan scan) || !scan.mayBeColumnar()) return node;
    return NodeCopy.with(relation, new NodeCopy.Change(scan, scan.inRows()));
  }
}
