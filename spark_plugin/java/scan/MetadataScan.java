package pydelta.scan;

import org.apache.spark.sql.execution.datasources.v2.python.PythonScan;
import org.apache.spark.sql.sources.Filter;
import pydelta.rule.RuleStatus;

/**
 * Spark's scan of a Python source over all columns and the metadata column. The optimizer rule reopens it.
 *
 * If the rule is off, the query reads with this scan. The scan has its own source: the source of the frame caches the read
 * function of the first query, which does not have this column.
 */
public class MetadataScan extends PythonScan {
  private final ScanRequest request;

  MetadataScan(ScanRequest request, RuleStatus status) {
    super(
        new PrunedSource(request, status, ScanReaders.ROWS), request.shortName(), request.schema(), request.options(),
        new Filter[0]);
    this.request = request;
  }

  public ScanRequest request() {
    return request;
  }
}
