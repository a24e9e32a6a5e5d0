package pydelta.catalog;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import java.lang.reflect.Field;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.execution.CacheManager;
import org.apache.spark.sql.execution.CachedData;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import pydelta.tables.Columns;
import pydelta.tables.SourceTable;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/** Names of our tables whose rows are in Spark's cache, in any session. */
class HeldTables {
  private HeldTables() {}

  /** JSON: for each the name, as SQL takes it, and the path. */
  static String of(SparkSession session) throws ReflectiveOperationException {
    Field field = CacheManager.class.getDeclaredField("cachedData");
    field.setAccessible(true);
    var held = (Seq<?>) field.get(session.sharedState().cacheManager());
    ArrayNode tables = JsonNodeFactory.instance.arrayNode();
    for (Object data : CollectionConverters.asJava(held)) {
      for (LogicalPlan leaf : CollectionConverters.asJava(((CachedData) data).plan().collectLeaves())) {
        if (leaf instanceof DataSourceV2Relation relation) addTable(relation, tables);
      }
    }
    return tables.toString();
  }

  private static void addTable(DataSourceV2Relation relation, ArrayNode tables) {
    if (!(relation.table() instanceof SourceTable) || relation.catalog().isEmpty() || relation.identifier().isEmpty()) return;
    Identifier ident = relation.identifier().get();
    var name = new StringBuilder(Columns.quoted(relation.catalog().get().name()));
    for (String part : ident.namespace()) name.append(".").append(Columns.quoted(part));
    name.append(".").append(Columns.quoted(ident.name()));
    tables.addArray().add(name.toString()).add(relation.table().properties().get("location"));
  }
}
