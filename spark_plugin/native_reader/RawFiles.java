package pydelta.native_reader;

import java.util.HashMap;
import java.util.Iterator;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.spark.deploy.SparkHadoopUtil$;

/**
 * Local files as they are, as Python reads them: Hadoop's usual file system compares each with a file .NAME.crc beside it, which
 * other programs leave as it was when they write the file anew.
 */
class RawFiles {
  private static Configuration settings = null;

  private RawFiles() {}

  /** What Hadoop is to be told, by its settings' names. No cache: it knows file systems by their scheme alone. */
  static Map told() {
    Map told = new HashMap();
    told.put("fs.file.impl", "org.apache.hadoop.fs.RawLocalFileSystem");
    told.put("fs.file.impl.disable.cache", "true");
    return told;
  }

  /** Hadoop's settings of this process, with these. */
  static synchronized Configuration settings() {
    if (settings == null) {
      Configuration copy = new Configuration(SparkHadoopUtil$.MODULE$.get().conf());
      for (Iterator each = told().entrySet().iterator(); each.hasNext();) {
        Map.Entry setting = (Map.Entry) each.next();
        copy.set((String) setting.getKey(), (String) setting.getValue());
      }
      settings = copy;
    }
    return settings;
  }
}
