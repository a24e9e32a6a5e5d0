package pydelta.catalog;

import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.connector.catalog.Changelog;
import org.apache.spark.sql.connector.catalog.ChangelogContext;
import org.apache.spark.sql.connector.catalog.ChangelogRange;
import org.apache.spark.sql.connector.catalog.Column;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import pydelta.tables.Errors;
import pydelta.tables.SourceTable;

/**
 * The change feed of a table as Spark's own `t CHANGES FROM ...` reads it. The feed has both images of an updated row, and no row
 * that a commit has only copied, whatever a query asks for.
 */
class SourceChangelog implements Changelog {
  private static final long MILLIS = 1000;  // the smallest unit of a commit's time
  private static final Set<String> SPARKS = Set.of(
      "startingversion", "endingversion", "startingtimestamp", "endingtimestamp", "startingboundinclusive",
      "endingboundinclusive", "deduplicationmode", "computeupdates");

  private final SourceTable changes;

  /** changes: opened with the options that range gives. */
  SourceChangelog(SourceTable changes) {
    this.changes = changes;
  }

  /** The error for Spark, which takes an UnsupportedOperationException for a catalog without changelogs. */
  static RuntimeException heard(UnsupportedOperationException error) {
    return new IllegalArgumentException(error.getMessage());
  }

  /** Options of reads, by lower-case names. label: of the table, for errors. */
  static Map<String, String> range(String label, ChangelogContext requested) {
    if (requested.deduplicationMode() == ChangelogContext.DeduplicationMode.NET_CHANGES) {
      throw Errors.unsupported("The net changes of " + label + " cannot be told: its change feed has no ids of rows. Read all "
          + "changes: leave the deduplication mode out.");
    }
    var options = new HashMap<String, String>();
    options.put("readchangefeed", "true");
    if (requested.range() instanceof ChangelogRange.VersionRange range) {
      options.put("startingversion", moved(range.startingVersion(), range.startingBoundInclusive() ? 0 : 1));
      if (range.endingVersion().isPresent()) {
        options.put("endingversion", moved(range.endingVersion().get(), range.endingBoundInclusive() ? 0 : -1));
      }
    } else if (requested.range() instanceof ChangelogRange.TimestampRange range) {
      long start = range.startingTimestamp();
      long from = range.startingBoundInclusive() ? start : (Math.floorDiv(start, MILLIS) + 1) * MILLIS;
      options.put("startingtimestamp", Travel.text(from));
      if (range.endingTimestamp().isPresent()) {
        long end = range.endingTimestamp().get();
        options.put("endingtimestamp", Travel.text(range.endingBoundInclusive() ? end : Math.floorDiv(end - 1, MILLIS) * MILLIS));
      }
    } else {
      throw Errors.of("ChangeDataFeedError", "DELTA_NO_START_FOR_CDC_READ", "The changes of " + label + " were asked for without "
          + "a start. Give a version or a time.");
    }
    return options;
  }

  /** version: as the user typed it. The source refuses what is not a number. */
  private static String moved(String version, long by) {
    return by != 0 && version.matches("\\d{1,18}") ? String.valueOf(Long.parseLong(version) + by) : version;
  }

  public String name() {
    return changes.name();
  }

  public Column[] columns() {
    return changes.columns();
  }

  public boolean containsCarryoverRows() {
    return false;
  }

  /** False, though a row may have changed twice: else Spark wants ids of rows. It uses this only for net changes. */
  public boolean containsIntermediateChanges() {
    return false;
  }

  public boolean representsUpdateAsDeleteAndInsert() {
    return false;
  }

  public ScanBuilder newScanBuilder(CaseInsensitiveStringMap requested) {
    var further = new HashMap<>(requested);
    further.keySet().removeAll(SPARKS);  // Spark passed them in the context
    return changes.newScanBuilder(new CaseInsensitiveStringMap(further));
  }
}
