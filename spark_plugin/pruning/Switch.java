package pydelta.pruning;

import org.apache.spark.sql.internal.SQLConf;

/** Settings of a session that are on unless they say false. */
class Switch {
  private Switch() {}

  static boolean isOn(String setting) {
    return !"false".equalsIgnoreCase(SQLConf.get().getConfString(setting, "true").trim());
  }
}
