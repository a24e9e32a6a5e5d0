package pydelta.parquet;

import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.spark.deploy.SparkHadoopUtil$;

/**
 * Local files as they are, as Python reads them: Hadoop's usual file system compares each with a file .NAME.crc beside it, which
 * other programs leave as it was when they write the file anew.
 */
class RawFiles {
  /** What Hadoop is to be told, by its settings' names. No cache: it knows file systems by their scheme alone. */
  static final Map<String, String> SETTINGS =
      Map.of("fs.file.impl", "org.apache.hadoop.fs.RawLocalFileSystem", "fs.file.impl.disable.cache", "true");

  private static Configuration settings = null;

  private RawFiles() {}

  /**
   * all, without what Hadoop's own defaults say, which its code knows too: 1,100 settings. Spark sends the settings of a
   * scan to its tasks and packs each for itself, 5 ms for all of them.
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

  /** Hadoop's settings of this process, with these. */
  static synchronized Configuration settings() {
    if (settings == null) {
      Configuration copy = new Configuration(SparkHadoopUtil$.MODULE$.get().conf());
      SETTINGS.forEach(copy::set);
      settings = copy;
    }
    return settings;
  }
}
