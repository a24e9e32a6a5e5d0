package pydelta.readers;

import org.apache.spark.api.python.ChainedPythonFunctions;
import org.apache.spark.sql.execution.metric.SQLMetric;
import org.apache.spark.sql.execution.python.ArrowPythonRunner;
import org.apache.spark.sql.types.StructType;
import scala.Option;
import scala.Tuple2;
import scala.collection.immutable.Map;
import scala.collection.immutable.Seq;

/**
 * Returns batches as the source makes them. Spark would cut them by the settings arrow.maxRecordsPerOutputBatch and
 * arrow.maxBytesPerOutputBatch, and Spark 4.2 then repeats rows: its last cut is the whole batch.
 */
@SuppressWarnings("unchecked")  // classes above it override a method of Spark with another type of rows
class WholeBatchRunner extends ArrowPythonRunner {
  WholeBatchRunner(
      Seq<Tuple2<ChainedPythonFunctions, Object>> functions, int evalType, int[][] arguments, StructType schema, String timeZone,
      boolean largeTypes, Map<String, String> conf, Map<String, SQLMetric> metrics, Option<String> artifacts,
      Option<String> session) {
    super(functions, evalType, arguments, schema, timeZone, largeTypes, conf, metrics, artifacts, session);
  }

  public int arrowMaxRecordsPerOutputBatch() {
    return -1;
  }

  public int arrowMaxBytesPerOutputBatch() {
    return -1;
  }
}
