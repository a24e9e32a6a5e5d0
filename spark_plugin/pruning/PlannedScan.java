package pydelta.pruning;

import java.nio.charset.StandardCharsets;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.spark.sql.execution.datasources.v2.python.PythonDataSourceReadInfo;
import scala.collection.immutable.Seq;

/**
 * A planning of the source: the read function, the partitions, and notes for the rule, as text inside pickled partitions: those on
 * the scan in the first one.
 *
 * A partition also holds what is in the table, values and names of files, which may be any text. A note begins with the nonce that
 * the request brought: nothing that was there before can hold it.
 */
class PlannedScan {
  private final PythonDataSourceReadInfo readInfo;
  private final String nonce;

  PlannedScan(PythonDataSourceReadInfo readInfo, String nonce) {
    this.readInfo = readInfo;
    this.nonce = nonce;
  }

  PythonDataSourceReadInfo readInfo() {
    return readInfo;
  }

  /**
   * The note of a name, as handover.py writes it: its parts are the groups of the pattern `text`. Null if there is none.
   *
   * Pickle stores a str as its bytes, so the text is whole inside a pickled partition.
   */
  Matcher note(String name, String text) {
    return note(0, pattern(name, text));
  }

  /** Of notes of a name. */
  Pattern pattern(String name, String text) {
    return Pattern.compile("pydelta-" + name + ":" + nonce + ":" + text + ";");
  }

  /** The note of a pattern in any partition. */
  Matcher note(int place, Pattern pattern) {
    Seq partitions = readInfo.partitions();
    if (partitions.length() <= place) return null;
    String pickled = new String((byte[]) partitions.apply(place), StandardCharsets.ISO_8859_1);
    Matcher note = pattern.matcher(pickled);
    return note.find() ? note : null;
  }
}
