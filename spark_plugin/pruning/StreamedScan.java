package pydelta.pruning;

import java.lang.reflect.Field;
import org.apache.spark.sql.connector.read.streaming.MicroBatchStream;
import org.apache.spark.sql.execution.datasources.v2.python.PythonMicroBatchStreamWithTriggerAvailableNow;
import org.apache.spark.sql.execution.datasources.v2.python.PythonScan;
import org.apache.spark.sql.execution.python.streaming.PythonStreamingSourceRunner;
import org.apache.spark.sql.sources.Filter;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Spark's scan of a Python source as a stream, with a PythonSourceStream in the place of Spark's own stream. */
class StreamedScan extends PythonScan {
  private static final Logger LOG = LoggerFactory.getLogger("pydelta.pruning");

  private final ScanRequest request;

  StreamedScan(ScanRequest request) {
    super(request.source(), request.shortName(), request.schema(), request.options(), new Filter[0]);
    this.request = request;
  }

  public MicroBatchStream toMicroBatchStream(String checkpointLocation) {
    MicroBatchStream stream = super.toMicroBatchStream(checkpointLocation);
    if (stream.getClass() != PythonMicroBatchStreamWithTriggerAvailableNow.class) return stream;
    try {
      Field runner = stream.getClass().getDeclaredField("runner");
      runner.setAccessible(true);
      return new PythonSourceStream(request, (PythonStreamingSourceRunner) runner.get(stream));
    } catch (ReflectiveOperationException error) {
      LOG.warn("A stream of " + request.path() + " is read by rows: " + error);
      return stream;
    }
  }
}
