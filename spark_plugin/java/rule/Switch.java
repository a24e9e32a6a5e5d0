package pydelta.rule;

import org.apache.spark.sql.internal.SQLConf;

/** Settings of a session that are on unless they say false. */
public class Switch {
  private Switch() {}

  public static boolean isOn(String setting) {
    return !"false".equalsIgnoreCase(SQLConf.get().getConfString(setting, "true").trim());
  }
}
