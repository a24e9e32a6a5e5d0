package pydelta.driver;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.core.type.TypeReference;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.util.HashMap;
import java.util.Locale;
import java.util.Map;
import org.apache.spark.sql.DataFrameReader;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.util.CaseInsensitiveMap;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.Dataset$;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Utils;
import org.apache.spark.sql.execution.datasources.v2.python.PythonDataSourceCreationResult;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;
import pydelta.tables.Source;
import pydelta.rule.PruneScans;
import pydelta.rule.Switch;
import scala.Option;
import scala.Tuple2;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/** The part of DataFrameReader.load in the JVM, if the driver's Python makes the DataSource (loads.py). */
public class DriverLoads {
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final TypeReference<Map<String, String>> TEXTS = new TypeReference<>() {};

  /**
   * Returns, as JSON, the options that Spark would give the DataSource, private ones included, and the directory in which
   * relative paths of its workers begin. Null if the session has switched this off, or if Spark has to say what is wrong with the
   * path.
   *
   * path: null if it is an option.
   */
  public String told(SparkSession session, DataFrameReader reader, String path) throws JsonProcessingException {
    String disabled = session.conf().get(Switch.DISABLE_CONF, "").toLowerCase(Locale.ROOT);
    if (disabled.contains(Switch.DRIVER_PLANNING)) return null;
    String olderSetting = session.conf().get(Switch.olderSetting(Switch.DRIVER_PLANNING), "true");
    if (!"true".equalsIgnoreCase(olderSetting.trim())) return null;
    CaseInsensitiveMap<String> readerOptions = reader.extraOptions();
    if (readerOptions.contains("paths") || readerOptions.contains("path") == (path != null)) return null;
    Option<SparkSession> before = activate(session);
    try {
      var options = new HashMap<>(CollectionConverters.asJava(DataSourceV2Utils.getOptionsWithPaths(readerOptions, paths(path))));
      options.putAll(Source.privateOptions(path == null ? readerOptions.get("path").get() : path));
      return JSON.writeValueAsString(Map.of("options", options, "directory", System.getProperty("user.dir")));
    } finally {
      restore(before);
    }
  }

  /** made: the pickled DataSource. schema: its columns, as JSON. own: options in addition to those of the reader, as JSON. */
  public Dataset<?> load(
      SparkSession session, DataFrameReader reader, String format, String path, byte[] made, String schema, String own)
      throws JsonProcessingException {
    Option<SparkSession> before = activate(session);
    try {
      var columns = (StructType) DataType.fromJson(schema);
      var source = new LoadedSource(format, new PythonDataSourceCreationResult(made, columns));
      CaseInsensitiveMap<String> options = reader.extraOptions();
      for (var option : JSON.readValue(own, TEXTS).entrySet()) {
        options = options.$plus(new Tuple2<>(option.getKey(), option.getValue()));
      }
      Option<LogicalPlan> plan = DataSourceV2Utils.loadV2Source(
          session, source, reader.userSpecifiedSchema(), options, format, paths(path));
      if (plan.isEmpty()) throw new IllegalStateException("Spark does not read a table of " + format);
      return PruneScans.withMetadataOfSession(Dataset$.MODULE$.ofRows(session, plan.get()));
    } finally {
      restore(before);
    }
  }

  private static Seq<String> paths(String path) {
    return Option.apply(path).toList();
  }

  private static Option<SparkSession> activate(SparkSession session) {
    Option<SparkSession> before = SparkSession.getActiveSession();
    SparkSession.setActiveSession(session);
    return before;
  }

  private static void restore(Option<SparkSession> before) {
    if (before.isDefined()) SparkSession.setActiveSession(before.get());
    else SparkSession.clearActiveSession();
  }
}
