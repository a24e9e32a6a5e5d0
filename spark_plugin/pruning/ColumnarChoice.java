package pydelta.pruning;

import java.util.function.Function;
import org.apache.spark.JobArtifactSet$;
import org.apache.spark.SparkContext;
import org.apache.spark.SparkContext$;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.classic.SparkSession$;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.StructType;

/** Whether scans are read in columns, and by what. Without an offer they are read by rows. */
class ColumnarChoice {
  static final String ENABLED_CONF = "spark.pydelta.columnarReader.enabled";

  private static final String MAX_ROWS_CONF = "spark.sql.execution.arrow.maxRecordsPerOutputBatch";

  private final RuleStatus status;
  private volatile byte[] archive = null;

  ColumnarChoice(RuleStatus status) {
    this.status = status;
  }

  /** The columnar reader: a zip of its sources, or of its class files. */
  void offer(byte[] archive) {
    this.archive = archive;
  }

  /** What makes Spark's reader factory for such rows columnar; null where Spark's own reader is to be used. */
  Function readerFor(StructType schema) {
    if (!enabled() || archive == null) return null;
    try {
      if (isIsolated()) return null;
      ColumnarUnit unit = ColumnarUnit.of((SparkContext) SparkContext$.MODULE$.getActive().get(), archive);
      if (!unit.fits().test(schema)) return null;
      status.columnar();
      return unit.columnar();
    } catch (VirtualMachineError error) {
      throw error;
    } catch (Throwable error) {
      if (error instanceof InterruptedException) Thread.currentThread().interrupt();
      status.notColumnar(error);
      return null;
    }
  }

  /**
   * Raises where Spark's own reader would give rows more than once: Spark 4.2, where it is told to cut batches of more than a
   * number of rows, gives the whole batch as the last cut.
   */
  static void refuseRepeatedRows() {
    String most = SQLConf.get().getConfString(MAX_ROWS_CONF, "-1").trim();
    if (!org.apache.spark.package$.MODULE$.SPARK_VERSION().startsWith("4.2.") || Integer.parseInt(most) <= 0) return;
    throw new UnsupportedOperationException(
        "Spark 4.2 gives rows of a Python data source more than once where " + MAX_ROWS_CONF + " is set, and here it is " + most
            + ". Set it to -1, which is Spark's default, or use Spark 4.3.");
  }

  /**
   * Whether the session keeps its artifacts to itself (spark.sql.artifact.isolation.enabled, and every session of Spark Connect):
   * executors give it a class loader that has not our jar.
   */
  private static boolean isIsolated() {
    scala.Option session = SparkSession$.MODULE$.getActiveSession();
    if (session.isEmpty()) return JobArtifactSet$.MODULE$.getCurrentJobArtifactState().isDefined();
    return ((SparkSession) session.get()).artifactManager().state() != null;
  }

  private static boolean enabled() {
    return !"false".equalsIgnoreCase(SQLConf.get().getConfString(ENABLED_CONF, "true").trim());
  }
}
