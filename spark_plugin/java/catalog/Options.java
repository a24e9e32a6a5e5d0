package pydelta.catalog;

import java.util.HashMap;
import java.util.Locale;
import java.util.Map;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * Options of a read or write: those that somebody gave, and ours beside them.
 *
 * The source takes private options beside the session's nonce (options/private.py). It comes with ours, so nobody else's may be
 * private: they would be taken along.
 */
class Options {
  private static final String PRIVATE = "pydelta.";

  private Options() {}

  /** given: by whoever asks; raises for private ones. own: ours, which count before them. */
  static CaseInsensitiveStringMap together(Map<String, String> given, Map<String, String> own) {
    refusePrivate(given);
    var ours = new CaseInsensitiveStringMap(own);
    var all = new HashMap<>(own);
    given.forEach((name, value) -> {
      if (!ours.containsKey(name)) all.put(name, value);
    });
    return new CaseInsensitiveStringMap(all);
  }

  /** A table is read where it is, whatever a query says. */
  static void refusePath(CaseInsensitiveStringMap given, String path) {
    if ((given.containsKey("path") && !given.get("path").equals(path)) || given.containsKey("paths")) {
      throw Errors.of("InvalidOptionError", "DELTA_ILLEGAL_OPTION", "The option path names another place than that of the table, "
          + path + ". Nothing was read or written. Leave it out, or name the other table.");
    }
  }

  static void refusePrivate(Map<String, String> given) {
    for (String name : given.keySet()) {
      if (name.toLowerCase(Locale.ROOT).startsWith(PRIVATE)) {
        throw Errors.of("InvalidOptionError", "DELTA_ILLEGAL_OPTION", "This read or write gives the options " + name
            + ", which only pydelta's own methods set. Nothing was read or written. Leave it out; where it stands in an entry of the "
            + "catalog or in a view, look who made it.");
      }
    }
  }
}
