package pydelta.scan;

import java.nio.charset.StandardCharsets;

/**
 * What a planning of the source says to the rule: notes, as text inside pickled partitions; the plan is in the first one.
 *
 * A partition also holds what is in the table, values and names of files, which may be any text. A note begins with the nonce that
 * the request brought: nothing that was there before can hold it.
 */
public class PlanNotes {
  private final byte[][] partitions;
  private final String nonce;
  private ReadPlan plan = null;

  /** partitions: pickled. */
  public PlanNotes(byte[][] partitions, String nonce) {
    this.partitions = partitions;
    this.nonce = nonce;
  }

  /** Of the request. */
  String nonce() {
    return nonce;
  }

  /** In the first partition. */
  public synchronized ReadPlan readPlan() {
    if (plan == null) plan = ReadPlan.parse(note(0, "plan"));
    return plan;
  }

  /**
   * The note of a name in a partition, as plan_notes.py writes it; null if there is none. It is ASCII, and pickle stores a str as
   * its bytes, so the text is whole inside a pickled partition.
   */
  public String note(int place, String name) {
    if (partitions.length <= place) return null;
    String partition = new String(partitions[place], StandardCharsets.ISO_8859_1);
    String mark = "pydelta-" + name + ":" + nonce + ":";
    int found = partition.indexOf(mark);
    if (found < 0) return null;
    int length = found + mark.length();
    int start = partition.indexOf(':', length) + 1;
    return partition.substring(start, start + Integer.parseInt(partition.substring(length, start - 1)));
  }
}
