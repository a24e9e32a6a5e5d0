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
 * What Spark is told of the size of a scan. Nothing, where the source does not say: Spark then takes it for large.
 *
 * Bytes are those of the files that are kept, for the columns that are read, in proportion as Spark's own scans of files.
 */
public record ScanStatistics(OptionalLong sizeInBytes, OptionalLong numRows, Map<NamedReference, ColumnStatistics> columnStats)
    implements Statistics {
  /** As Spark counts what a row takes beside its columns. */
  private static final long ROW_OVERHEAD = 8;

  static ScanStatistics unknown() {
    return new ScanStatistics(OptionalLong.empty(), OptionalLong.empty(), Map.of());
  }

  /**
   * What a planning is asked for beside files, with a comma before it: numbers of rows cost time, and only some sessions use
   * them.
   */
  public static String wish() {
    return SQLConf.get().cboEnabled() || SQLConf.get().planStatsEnabled() ? ", \"statistics\": true" : "";
  }

  /** facts, kept: null where the source does not say. */
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

  /** Of as many rows that have other columns. */
  public static ScanStatistics ofOtherColumns(Statistics known, StructType columns, StructType others) {
    if (!known.sizeInBytes().isPresent()) return unknown();
    double share = (double) (ROW_OVERHEAD + others.defaultSize()) / (ROW_OVERHEAD + columns.defaultSize());
    long bytes = (long) Math.ceil(known.sizeInBytes().getAsLong() * share);
    return new ScanStatistics(OptionalLong.of(bytes), known.numRows(), Map.of());
  }
}
