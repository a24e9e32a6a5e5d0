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
import scala.collection.immutable.Seq;

/** Tables of ours of whose names Spark holds rows in memory, in whatever session. */
class HeldTables {
  private HeldTables() {}

  /** JSON: for each the name, as SQL takes it, and the path. */
  static String of(SparkSession session) throws ReflectiveOperationException {
    Field field = CacheManager.class.getDeclaredField("cachedData");
    field.setAccessible(true);
    Seq held = (Seq) field.get(session.sharedState().cacheManager());
    ArrayNode told = JsonNodeFactory.instance.arrayNode();
    for (int i = 0; i < held.length(); i++) {
      LogicalPlan plan = ((CachedData) held.apply(i)).plan();
      Seq leaves = plan.collectLeaves();
      for (int j = 0; j < leaves.length(); j++) {
        if (leaves.apply(j) instanceof DataSourceV2Relation) tell((DataSourceV2Relation) leaves.apply(j), told);
      }
    }
    return told.toString();
  }

  private static void tell(DataSourceV2Relation relation, ArrayNode told) {
    if (!(relation.table() instanceof SourceTable) || relation.catalog().isEmpty() || relation.identifier().isEmpty()) return;
    Identifier ident = relation.identifier().get();
    StringBuilder name = new StringBuilder(Columns.quoted(relation.catalog().get().name()));
    for (int i = 0; i < ident.namespace().length; i++) name.append(".").append(Columns.quoted(ident.namespace()[i]));
    name.append(".").append(Columns.quoted(ident.name()));
    ArrayNode one = told.addArray();
    one.add(name.toString());
    one.add(relation.table().properties().get("location"));
  }
}
