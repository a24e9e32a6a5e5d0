package pydelta.catalog;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.io.InputStream;
import java.util.Iterator;
import org.apache.spark.sql.classic.SparkSession;
import pydelta.rule.LinkCheck;
import pydelta.rule.PruneScans;

/**
 * A session of Spark Connect, whose client has sent these classes (sql_catalog/uploaded.py): what Python does for a classic session
 * is done here, when its catalog `pydelta` is made.
 *
 * What the client has to say stands in a file beside the classes and not in settings, as it has the nonce of the session: a view
 * may read settings.
 */
class Uploaded {
  /** A setting of the catalog: which file beside the classes is this client's. */
  static final String KEY = "uploaded";

  private static final String DELTA_SPARK = "org.apache.spark.sql.delta.catalog.DeltaCatalog";
  private static final String PROBLEMS_CONF = "spark.sql.catalog.pydelta.linkProblems";
  private static final String OTHER_DELTA_CONF = "spark.sql.catalog.pydelta.deltaSpark";

  private Uploaded() {}

  static void prepare(SparkSession session, String key) {
    JsonNode said = file("pydelta/" + key + ".json");
    if (said.get("checkLinks").asBoolean()) session.conf().set(PROBLEMS_CONF, problems());
    PruneScans rule = PruneScans.addedTo(session);
    for (Iterator formats = said.get("formats").elements(); formats.hasNext();) rule.addFormat(((JsonNode) formats.next()).asText());
    rule.offerMetadata(said.get("metadata").asText());
    JsonNode limits = said.get("limits");
    rule.setLimits(limits.get(0).intValue(), limits.get(1).intValue());
    JsonNode told = said.get("told");
    for (Iterator names = told.fieldNames(); names.hasNext();) {
      String name = (String) names.next();
      rule.tell(name, told.get(name).asText());
    }
    rule.tell(Entry.TOLD, "true");
    boolean isThere = hasDeltaSpark();
    if (isThere) rule.tell("deltaNames", "false");
    session.conf().set(OTHER_DELTA_CONF, isThere);
    Catalogs.prepare(session);
    Catalogs.enterFunctions(session);
  }

  private static String problems() {
    try {
      return new LinkCheck().problems();
    } catch (Exception error) {
      throw Errors.unchecked(error);
    }
  }

  private static JsonNode file(String name) {
    InputStream stream = Uploaded.class.getClassLoader().getResourceAsStream(name);
    if (stream == null) throw new IllegalStateException("the classes of pydelta came without " + name + ": call register(spark)");
    try {
      try {
        return new ObjectMapper().readTree(stream);
      } finally {
        stream.close();
      }
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
