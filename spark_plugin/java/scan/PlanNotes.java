package pydelta.scan;

import java.nio.charset.StandardCharsets;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * What a planning of the source says to the rule: notes, as text inside pickled partitions; those on the scan in the first one.
 *
 * A partition also holds what is in the table, values and names of files, which may be any text. A note begins with the nonce that
 * the request brought: nothing that was there before can hold it.
 */
public class PlanNotes {
  private final byte[][] partitions;
  private final String nonce;

  /** partitions: pickled. */
  public PlanNotes(byte[][] partitions, String nonce) {
    this.partitions = partitions;
    this.nonce = nonce;
  }

  /** Of the request. */
  String nonce() {
    return nonce;
  }

  /**
   * The note of a name, as handover.py writes it: its parts are the groups of the pattern `text`. Null if there is none.
   *
   * Pickle stores a str as its bytes, so the text is whole inside a pickled partition.
   */
  public Matcher note(String name, String text) {
    return note(0, pattern(name, text));
  }

  /** Of notes of a name. */
  Pattern pattern(String name, String text) {
    return Pattern.compile("pydelta-" + name + ":" + nonce + ":" + text + ";");
  }

  /** The note of a pattern in any partition. */
  Matcher note(int place, Pattern pattern) {
    if (partitions.length <= place) return null;
    Matcher note = pattern.matcher(new String(partitions[place], StandardCharsets.ISO_8859_1));
    return note.find() ? note : null;
  }
}
