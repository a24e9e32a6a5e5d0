package pydelta.tables;

import java.util.ArrayList;
import java.util.Map;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.SupportsDynamicOverwrite;
import org.apache.spark.sql.connector.write.SupportsOverwriteV2;
import org.apache.spark.sql.connector.write.SupportsTruncate;
import org.apache.spark.sql.connector.write.Write;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.execution.datasources.v2.python.PythonTable;
import org.apache.spark.sql.types.StructType;
import pydelta.rule.PruneScans;

/**
 * Passes in options of the source which rows an overwrite replaces, as Spark's own write builder of a Python source cannot do.
 *
 * The source's writer then writes the rows, as for every save.
 */
class SourceWriteBuilder implements SupportsOverwriteV2, SupportsDynamicOverwrite {
  private final LogicalWriteInfo info;
  private final StructType columns;
  private final Map<String, String> own;
  private final String[] partitionColumns;
  private final Map<String, String> properties;
  private boolean overwrites = false;

  /** columns: of the table. own: options of ours, which this builder adds to. properties: of the table. */
  SourceWriteBuilder(
      LogicalWriteInfo info, StructType columns, Map<String, String> own, String[] partitionColumns,
      Map<String, String> properties) {
    this.info = info;
    this.columns = columns;
    this.own = own;
    this.partitionColumns = partitionColumns;
    this.properties = properties;
    own.put("pydelta.fromcatalog", "true");
  }

  public WriteBuilder truncate() {
    overwrites = true;
    own.put("partitionOverwriteMode", "static");
    return this;
  }

  public boolean canOverwrite(Predicate[] predicates) {
    return json(predicates) != null;
  }

  public WriteBuilder overwrite(Predicate[] predicates) {
    overwrites = true;
    own.put("pydelta.replacepredicate", json(predicates));
    return this;
  }

  public WriteBuilder overwriteDynamicPartitions() {
    overwrites = true;
    own.put("partitionOverwriteMode", "dynamic");
    return this;
  }

  public Write build() {
    Options.refusePath(info.options(), own.get("path"));
    if (!own.containsKey("pydelta.mode")) own.put("pydelta.mode", overwrites ? "overwrite" : "append");
    var infoWithOptions = new WriteInfo(info, Options.together(info.options().asCaseSensitiveMap(), own));
    WriteBuilder builder = new PythonTable(Source.source(), Source.FORMAT, info.schema()).newWriteBuilder(infoWithOptions);
    if ("overwrite".equals(own.get("pydelta.mode"))) builder = ((SupportsTruncate) builder).truncate();
    return new SourceWrite(builder.build(), infoWithOptions.options(), partitionColumns, properties);
  }

  /** A JSON list of the predicates; null if Python does not understand one of them. */
  private String json(Predicate[] predicates) {
    var texts = new ArrayList<String>();
    for (Predicate predicate : predicates) {
      String text = PruneScans.json(predicate, columns);
      if (text == null) return null;
      texts.add(text);
    }
    return texts.toString();
  }
}
