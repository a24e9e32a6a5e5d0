package pydelta.pruning;

import java.util.Map;
import java.util.function.Function;
import org.apache.spark.JobArtifactSet$;
import org.apache.spark.SparkContext;
import org.apache.spark.SparkContext$;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.StructType;

/** Whether scans of a session are read in columns, and by what. */
class BatchReads {
  static final String ENABLED_CONF = "spark.pydelta.columnarReader.enabled";

  private final Tally tally;
  private volatile Map sources = null;

  BatchReads(Tally tally) {
    this.tally = tally;
  }

  /** Sources of the columnar reader: name of a file -> its bytes. */
  void offer(Map sources) {
    this.sources = sources;
  }

  /** What makes Spark's reader factory for such rows columnar; null where Spark's own reader is to be used. */
  Function readerFor(StructType schema) {
    if (!enabled() || sources == null) return null;
    try {
      if (hasArtifacts()) return null;
      ColumnarUnit unit = ColumnarUnit.of((SparkContext) SparkContext$.MODULE$.getActive().get(), sources);
      if (!unit.fits().test(schema)) return null;
      tally.columnar();
      return unit.columnar();
    } catch (VirtualMachineError error) {
      throw error;
    } catch (Throwable error) {
      if (error instanceof InterruptedException) Thread.currentThread().interrupt();
      tally.notColumnar(error);
      return null;
    }
  }

  /** Executors give a session with artifacts of its own (SparkSession.addArtifact) a class loader that has not our jar. */
  private static boolean hasArtifacts() {
    return JobArtifactSet$.MODULE$.getCurrentJobArtifactState().isDefined();
  }

  private static boolean enabled() {
    return "true".equalsIgnoreCase(SQLConf.get().getConfString(ENABLED_CONF, "false").trim());
  }
}
