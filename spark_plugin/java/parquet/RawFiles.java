package pydelta.parquet;

import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.spark.deploy.SparkHadoopUtil$;

/**
 * Local files as they are, as Python reads them. Hadoop's usual file system compares each with a file .NAME.crc next to it, which
 * other programs do not update when they rewrite the file.
 */
class RawFiles {
  /** Hadoop's settings, by name. They switch its cache off, which identifies file systems only by their scheme. */
  static final Map<String, String> SETTINGS =
      Map.of("fs.file.impl", "org.apache.hadoop.fs.RawLocalFileSystem", "fs.file.impl.disable.cache", "true");

  private static Configuration settings = null;

  private RawFiles() {}

  /**
   * The settings without those that equal Hadoop's own defaults, which its code also has: 1,100 settings. Spark sends the
   * settings of a scan to its tasks, and it takes 5 ms to serialize all of them for each task.
   */
  static Configuration sent(Configuration all) {
    Configuration sent = new Configuration(false);
    for (Map.Entry<String, String> setting : all) {
      String name = setting.getKey();
      String[] sources = all.getPropertySources(name);
      boolean isDefault = sources != null && sources.length > 0 && sources[sources.length - 1].endsWith("-default.xml");
      String value = isDefault ? null : all.get(name);
      if (value != null) sent.set(name, value);
    }
    return sent;
  }

  /** Hadoop's settings of this process, with the settings of this class. */
  static synchronized Configuration settings() {
    if (settings == null) {
      Configuration copy = new Configuration(SparkHadoopUtil$.MODULE$.get().conf());
      SETTINGS.forEach(copy::set);
      settings = copy;
    }
    return settings;
  }
}
