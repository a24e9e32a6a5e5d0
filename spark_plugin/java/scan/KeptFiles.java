package pydelta.scan;

import java.util.regex.Matcher;

/** How many files and bytes a planned scan reads, of how many, and how many rows if that is known: the source's report. */
public class KeptFiles {
  private final String files;
  private final String filesTotal;
  private final String bytes;
  private final String bytesTotal;
  private final String rows;

  private KeptFiles(Matcher report) {
    this.files = report.group(1);
    this.filesTotal = report.group(2);
    this.bytes = report.group(3);
    this.bytesTotal = report.group(4);
    this.rows = report.group(5);
  }

  /** Null if the source made no report. */
  static KeptFiles of(PlannedScan planned) {
    Matcher report = planned.note("kept", "(\\d+)/(\\d+) files,(\\d+)/(\\d+) bytes(?:,(\\d+) rows)?");
    return report == null ? null : new KeptFiles(report);
  }

  /** Of the files that are kept. */
  public long bytes() {
    return Long.parseLong(bytes);
  }

  /** Whether the scan is known to have no more bytes and rows than these. */
  public boolean isWithin(long mostBytes, long mostRows) {
    return bytes() <= mostBytes && rows != null && Long.parseLong(rows) <= mostRows;
  }

  public String toJson() {
    return "{\"files_total\": " + filesTotal + ", \"bytes_total\": " + bytesTotal
        + ", \"files_kept\": " + files + ", \"bytes_kept\": " + bytes + "}";
  }

  public String toString() {
    return files + " of " + filesTotal + " files, " + bytes + " of " + bytesTotal + " bytes";
  }
}
