package pydelta.scan;

import com.fasterxml.jackson.databind.JsonNode;

/** How many files and bytes a planned scan reads, of how many: the source's report. */
public class KeptFiles {
  private final long files;
  private final long filesTotal;
  private final long bytes;
  private final long bytesTotal;

  private KeptFiles(JsonNode kept) {
    this.files = kept.path("files").longValue();
    this.filesTotal = kept.path("files_total").longValue();
    this.bytes = kept.path("bytes").longValue();
    this.bytesTotal = kept.path("bytes_total").longValue();
  }

  /** Null if the source made no report. */
  static KeptFiles of(ReadPlan plan) {
    return plan.has("kept") ? new KeptFiles(plan.part("kept")) : null;
  }

  /** Of the files that are kept. */
  public long bytes() {
    return bytes;
  }

  public String toJson() {
    return "{\"files_total\": " + filesTotal + ", \"bytes_total\": " + bytesTotal
        + ", \"files_kept\": " + files + ", \"bytes_kept\": " + bytes + "}";
  }

  public String toString() {
    return files + " of " + filesTotal + " files, " + bytes + " of " + bytesTotal + " bytes";
  }
}
