package pydelta.catalog;

import java.time.Instant;
import java.time.temporal.ChronoUnit;

/** Times of TIMESTAMP AS OF, as the source reads them. */
class Travel {
  private Travel() {}

  /** micros: since 1970 in UTC. */
  static String text(long micros) {
    return Instant.EPOCH.plus(micros, ChronoUnit.MICROS).toString();
  }
}
