package pydelta.messages;

import com.fasterxml.jackson.databind.JsonNode;

/**
 * How many files and bytes a planned scan reads, and how many the table has: the source's report. bytes: of the files to read.
 */
public record KeptFiles(long files, long filesTotal, long bytes, long bytesTotal) {

  /** Null if the source made no report. */
  public static KeptFiles of(ReadPlan plan) {
    if (!plan.has("kept")) return null;
    JsonNode kept = plan.part("kept");
    return new KeptFiles(
        kept.path("files").longValue(), kept.path("files_total").longValue(),
        kept.path("bytes").longValue(), kept.path("bytes_total").longValue());
  }

  public String toJson() {
    return "{\"files_total\": " + filesTotal + ", \"bytes_total\": " + bytesTotal
        + ", \"files_kept\": " + files + ", \"bytes_kept\": " + bytes + "}";
  }

  public String toString() {
    return files + " of " + filesTotal + " files, " + bytes + " of " + bytesTotal + " bytes";
  }
}
