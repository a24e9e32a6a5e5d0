package pydelta.joins;

import java.util.Map;
import java.util.OptionalLong;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.read.Statistics;
import org.apache.spark.sql.connector.read.colstats.ColumnStatistics;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.StructType;
import pydelta.messages.KeptFiles;
import pydelta.scan.ScanRequest;

/**
 * What Spark learns about the size of a scan. It learns nothing if the source does not know the size. Spark then assumes that the
 * scan is large.
 *
 * Bytes are those of the files to read, reduced to the columns to read, in the same way as for Spark's own scans of files.
 */
public record ScanStatistics(OptionalLong sizeInBytes, OptionalLong numRows, Map<NamedReference, ColumnStatistics> columnStats)
    implements Statistics {
  /** What Spark adds for a row to the sizes of its columns. */
  private static final long ROW_OVERHEAD = 8;

  static ScanStatistics unknown() {
    return new ScanStatistics(OptionalLong.empty(), OptionalLong.empty(), Map.of());
  }

  /** What a plan request asks for besides files, after a comma: row counts cost time, and only some sessions use them. */
  public static String wish() {
    return SQLConf.get().cboEnabled() || SQLConf.get().planStatsEnabled() ? ", \"statistics\": true" : "";
  }

  /** facts, kept: null if the source does not report them. */
  static ScanStatistics of(ScanRequest request, KeptFiles kept, ScanFacts facts) {
    if (kept == null || facts == null) return unknown();
    long width = ROW_OVERHEAD + request.schema().defaultSize();
    double share = (double) width / (ROW_OVERHEAD + request.fullSchema().defaultSize());
    long bytes = (long) Math.ceil(kept.bytes() * Math.min(1.0, share) * SQLConf.get().fileCompressionFactor());
    OptionalLong rows = facts.rows();
    if (request.limit() != null) {
      long most = request.limit();
      bytes = Math.min(bytes, most * width);
      if (rows.isPresent()) rows = OptionalLong.of(Math.min(rows.getAsLong(), most));
    }
    boolean tellsColumns = rows.isPresent() && request.limit() == null && !request.readsNoColumns();
    return new ScanStatistics(OptionalLong.of(bytes), rows, tellsColumns ? facts.columns() : Map.of());
  }

  /** The statistics of the same number of rows with other columns. */
  public static ScanStatistics ofOtherColumns(Statistics known, StructType columns, StructType others) {
    if (!known.sizeInBytes().isPresent()) return unknown();
    double share = (double) (ROW_OVERHEAD + others.defaultSize()) / (ROW_OVERHEAD + columns.defaultSize());
    long bytes = (long) Math.ceil(known.sizeInBytes().getAsLong() * share);
    return new ScanStatistics(OptionalLong.of(bytes), known.numRows(), Map.of());
  }
}
