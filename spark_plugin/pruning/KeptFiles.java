package pydelta.pruning;

import java.nio.charset.StandardCharsets;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import scala.collection.immutable.Seq;

/** How many files and bytes a planned scan reads, of how many: the source's report. */
class KeptFiles {
  /** As handover.py writes it. Pickle stores a str as its bytes, so the text is whole inside a pickled partition. */
  private static final Pattern REPORT = Pattern.compile("pydelta-kept:(\\d+)/(\\d+) files,(\\d+)/(\\d+) bytes;");

  private final String files;
  private final String filesTotal;
  private final String bytes;
  private final String bytesTotal;

  private KeptFiles(Matcher report) {
    this.files = report.group(1);
    this.filesTotal = report.group(2);
    this.bytes = report.group(3);
    this.bytesTotal = report.group(4);
  }

  /** partitions: byte[] each. Null if the first holds no report. */
  static KeptFiles in(Seq partitions) {
    if (partitions.isEmpty()) return null;
    Matcher report = REPORT.matcher(new String((byte[]) partitions.apply(0), StandardCharsets.ISO_8859_1));
    return report.find() ? new KeptFiles(report) : null;
  }

  /** Of the files that are kept. */
  long bytes() {
    return Long.parseLong(bytes);
  }

  String toJson() {
    return "{\"files_total\": " + filesTotal + ", \"bytes_total\": " + bytesTotal
        + ", \"files_kept\": " + files + ", \"bytes_kept\": " + bytes + "}";
  }

  public String toString() {
    return files + " of " + filesTotal + " files, " + bytes + " of " + bytesTotal + " bytes";
  }
}
