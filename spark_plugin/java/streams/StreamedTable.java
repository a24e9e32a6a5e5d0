package pydelta.streams;

import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.streaming.StreamingRelationV2;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.Dataset$;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.execution.datasources.v2.python.PythonScan;
import org.apache.spark.sql.execution.datasources.v2.python.PythonTable;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import pydelta.rule.NodeCopy;
import pydelta.rule.ReopenScans;
import pydelta.rule.RuleStatus;
import pydelta.scan.ScanRequest;

/** Spark's table of a Python source that is read as a stream, whose batches the rule may have read in columns. */
public class StreamedTable extends PythonTable {
  private final PythonTable table;
  private final RuleStatus status;

  private StreamedTable(PythonTable table, ScanRequest request, RuleStatus status) {
    super(request.source(), request.shortName(), request.schema());
    this.table = table;
    this.status = status;
  }

  /** The frame of a stream over such a table. A frame that is more than the relation of a Python source stays as it is. */
  public static Dataset<Row> in(Dataset<Row> frame, RuleStatus status) {
    if (!(frame.queryExecution().analyzed() instanceof StreamingRelationV2 relation)) return frame;
    if (relation.table().getClass() != PythonTable.class) return frame;
    var table = (PythonTable) relation.table();
    ScanRequest request = ReopenScans.everything(scan(table, relation.extraOptions()));
    var streamed = new StreamedTable(table, request, status);
    LogicalPlan copy = NodeCopy.with(relation, new NodeCopy.Change(table, streamed));
    return Dataset$.MODULE$.ofRows(frame.sparkSession(), copy);
  }

  private static PythonScan scan(PythonTable table, CaseInsensitiveStringMap options) {
    return (PythonScan) table.newScanBuilder(options).build();
  }

  public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
    return () -> new StreamedScan(ReopenScans.everything(scan(table, options)), status);
  }
}
