package pydelta.tables;

import java.util.Arrays;
import org.apache.spark.sql.catalyst.util.CharVarcharUtils$;
import org.apache.spark.sql.connector.catalog.ColumnDefaultValue;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.Metadata;
import org.apache.spark.sql.types.MetadataBuilder;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/** Columns of tables, and their names. */
public class Columns {
  private static final String ENTRY_KEY = "pydelta.table";
  private static final String STALE_KEY = "pydelta.entryIsOld";

  private Columns() {}

  /** One part of a name, quoted for a parser of names. */
  public static String quoted(String name) {
    return "`" + name.replace("`", "``") + "`";
  }

  /** A new column, as the JSON of a schema that has only this column. CHAR and VARCHAR are as `stored`. */
  public static String schema(DataType type, boolean nullable, String comment) {
    return stored(new StructType(new StructField[] {field("column", type, nullable, comment)})).json();
  }

  public static StructField field(String name, DataType type, boolean nullable, String comment) {
    var field = new StructField(name, type, nullable, Metadata.empty());
    return comment == null ? field : field.withComment(comment);
  }

  /** A default's SQL; null for none. */
  static String defaultOf(ColumnDefaultValue value) {
    return value == null ? null : value.getSql();
  }

  /** The columns with text for CHAR and VARCHAR, whose declared type is in the metadata. */
  static StructType stored(StructType columns) {
    return CharVarcharUtils$.MODULE$.replaceCharVarcharWithStringInSchema(columns);
  }

  /**
   * The columns of a table that was opened by its name. The metadata of each has the entry's options, as in a session without
   * this catalog, and whether the entry has other columns than the table (dataframe_api/catalog.py).
   */
  public static StructType ofEntry(StructType columns, StructType entered, String options) {
    boolean stale = !bare(entered).equals(bare(columns));
    return new StructType(Arrays.stream(columns.fields()).map(field -> {
      MetadataBuilder metadata = new MetadataBuilder().withMetadata(field.metadata()).putString(ENTRY_KEY, options);
      if (stale) metadata.putString(STALE_KEY, "true");
      return new StructField(field.name(), field.dataType(), field.nullable(), metadata.build());
    }).toArray(StructField[]::new));
  }

  private static String bare(StructType columns) {
    return columns.asNullable().catalogString();
  }
}
