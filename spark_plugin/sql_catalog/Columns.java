package pydelta.sql_catalog;

import org.apache.spark.sql.types.MetadataBuilder;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/** Columns of tables, and their names. */
class Columns {
  private static final String ENTRY_KEY = "pydelta.table";
  private static final String STALE_KEY = "pydelta.entryIsOld";

  private Columns() {}

  /** One part of a name, whatever is in it, for what parses names. */
  static String quoted(String name) {
    return "`" + name.replace("`", "``") + "`";
  }

  /**
   * The columns of a table that was opened by its name: each tells the entry's options, as in a session without this catalog, and
   * whether the entry holds other columns by now (dataframe_api/catalog.py).
   */
  static StructType ofEntry(StructType columns, StructType entered, String options) {
    boolean stale = !bare(entered).equals(bare(columns));
    StructField[] fields = new StructField[columns.fields().length];
    for (int i = 0; i < fields.length; i++) {
      StructField field = columns.fields()[i];
      MetadataBuilder metadata = new MetadataBuilder().withMetadata(field.metadata()).putString(ENTRY_KEY, options);
      if (stale) metadata.putString(STALE_KEY, "true");
      fields[i] = new StructField(field.name(), field.dataType(), field.nullable(), metadata.build());
    }
    return new StructType(fields);
  }

  private static String bare(StructType columns) {
    return columns.asNullable().catalogString();
  }
}
