package pydelta.streams;

import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.execution.datasources.v2.python.PythonScan;
import org.apache.spark.sql.sources.Filter;
import pydelta.rule.RuleStatus;
import pydelta.scan.ScanRequest;

/** Spark's scan of a Python source as a stream, with a PythonSourceStream in the place of Spark's own stream. */
class StreamedScan extends PythonScan {
  private final ScanRequest request;
  private final RuleStatus status;

  StreamedScan(ScanRequest request, RuleStatus status) {
    super(request.source(), request.shortName(), request.schema(), request.options(), new Filter[0]);
    this.request = request;
    this.status = status;
  }

  public MicroBatchStream toMicroBatchStream(String checkpointLocation) {
    var runner = new StreamRunner(request, status);
    runner.init();
    return new PythonSourceStream(request, runner, status);
  }
}
