package pydelta.tables;

import java.util.HashMap;
import java.util.Locale;
import java.util.Map;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * Options of a read or write: those of the user, and ours.
 *
 * The source accepts private options next to the session's nonce (options/private.py). Our options have the nonce, so the user's
 * must not be private: the source would accept them too.
 */
public class Options {
  private static final String PRIVATE = "pydelta.";

  private Options() {}

  /** given: the user's; raises for private ones. own: ours, which replace the user's. */
  static CaseInsensitiveStringMap together(Map<String, String> queryOptions, Map<String, String> own) {
    refusePrivate(queryOptions);
    var ours = new CaseInsensitiveStringMap(own);
    var all = new HashMap<>(own);
    queryOptions.forEach((name, value) -> {
      if (!ours.containsKey(name)) all.put(name, value);
    });
    return new CaseInsensitiveStringMap(all);
  }

  /** Raises if a query gives another path than the table's. */
  static void refusePath(CaseInsensitiveStringMap queryOptions, String path) {
    if ((queryOptions.containsKey("path") && !queryOptions.get("path").equals(path)) || queryOptions.containsKey("paths")) {
      throw Errors.of("InvalidOptionError", "DELTA_ILLEGAL_OPTION", "The option path names another place than that of the table, "
          + path + ". Nothing was read or written. Leave it out, or name the other table.");
    }
  }

  public static void refusePrivate(Map<String, String> queryOptions) {
    for (String name : queryOptions.keySet()) {
      if (name.toLowerCase(Locale.ROOT).startsWith(PRIVATE)) {
        throw Errors.of("InvalidOptionError", "DELTA_ILLEGAL_OPTION", "This read or write gives the options " + name
            + ", which only pydelta's own methods set. Nothing was read or written. Leave it out; where it stands in an entry of "
            + "the catalog or in a view, look who made it.");
      }
    }
  }
}
