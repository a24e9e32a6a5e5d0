package pydelta.catalog;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.io.InputStream;
import org.apache.spark.sql.classic.SparkSession;
import pydelta.rule.LinkCheck;
import pydelta.rule.PruneScans;
import pydelta.tables.Errors;

/**
 * Prepares a session of Spark Connect, whose client has sent these classes (sql_catalog/uploaded.py), when its catalog `pydelta`
 * is made. Python does the same for a classic session.
 *
 * The client's message is in a file next to the classes and not in settings. It has the nonce of the session, and a view may read
 * settings.
 */
class Uploaded {
  /** A setting of the catalog: the name of this client's file next to the classes. */
  static final String KEY = "uploaded";

  private static final String DELTA_SPARK = "org.apache.spark.sql.delta.catalog.DeltaCatalog";
  private static final String PROBLEMS_CONF = "spark.sql.catalog.pydelta.linkProblems";
  private static final String OTHER_DELTA_CONF = "spark.sql.catalog.pydelta.deltaSpark";

  private Uploaded() {}

  static void prepare(SparkSession session, String key) {
    JsonNode upload = file("pydelta/" + key + ".json");
    if (upload.get("checkLinks").asBoolean()) {
      session.conf().set(PROBLEMS_CONF, Errors.undeclared(() -> new LinkCheck().problems()));
    }
    PruneScans rule = PruneScans.addedTo(session);
    for (JsonNode format : upload.get("formats")) rule.addFormat(format.asText());
    rule.offerMetadata(upload.get("metadata").asText());
    JsonNode limits = upload.get("limits");
    rule.setLimits(limits.get(0).intValue(), limits.get(1).intValue());
    for (var entry : upload.get("told").properties()) rule.tell(entry.getKey(), entry.getValue().asText());
    rule.tell(Entry.ENTRIES_IN_COLUMNS, "true");
    boolean isThere = hasDeltaSpark();
    if (isThere) rule.tell("deltaNames", "false");
    session.conf().set(OTHER_DELTA_CONF, isThere);
    Catalogs.prepare(session);
    Catalogs.enterFunctions(session);
  }

  private static JsonNode file(String name) {
    try (InputStream stream = Uploaded.class.getClassLoader().getResourceAsStream(name)) {
      if (stream == null) {
        throw new IllegalStateException("the classes of pydelta came without " + name + ": call register(spark)");
      }
      return new ObjectMapper().readTree(stream);
    } catch (IOException error) {
      throw Errors.unchecked(error);
    }
  }

  private static boolean hasDeltaSpark() {
    try {
      Class.forName(DELTA_SPARK, false, Thread.currentThread().getContextClassLoader());
      return true;
    } catch (ClassNotFoundException error) {
      return false;
    }
  }
}
