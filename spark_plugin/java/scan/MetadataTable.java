package pydelta.scan;

import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.Dataset$;
import org.apache.spark.sql.connector.catalog.Column;
import org.apache.spark.sql.connector.catalog.MetadataColumn;
import org.apache.spark.sql.connector.catalog.SupportsMetadataColumns;
import org.apache.spark.sql.connector.catalog.SupportsRead;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import org.apache.spark.sql.execution.datasources.v2.python.PythonTable;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import pydelta.rule.ReopenScans;
import pydelta.rule.RuleStatus;

/**
 * Spark's table of a Python source, with a metadata column. The column is not part of `*`, and is read only if a query names it.
 *
 * A column of the table with its name hides it.
 */
public class MetadataTable implements Table, SupportsRead, SupportsMetadataColumns {
  /** Options of reads that return other rows than those of the table: changes, a view, and what a DML command reads. */
  private static final List<String> OTHER_READS = List.of("readChangeFeed", "readChangeData", "pydelta.view", "pydelta.files");

  private final PythonTable table;
  private final StructField column;
  private final RuleStatus status;

  private MetadataTable(PythonTable table, StructField column, RuleStatus status) {
    this.table = table;
    this.column = column;
    this.status = status;
  }

  /** The frame of a relation over such a table. A frame that is more than the relation of a Python source stays as it is. */
  public static Dataset<Row> in(Dataset<Row> frame, StructField column, RuleStatus status) {
    LogicalPlan plan = frame.queryExecution().analyzed();
    if (!(plan instanceof DataSourceV2Relation relation)) return frame;
    if (relation.table().getClass() != PythonTable.class) return frame;
    if (!canOffer(column, relation.schema(), relation.options())) return frame;
    MetadataTable table = new MetadataTable((PythonTable) relation.table(), column, status);
    LogicalPlan offering = ReopenScans.withTable(relation, table, relation.output());
    offering.setAnalyzed();  // the original plan is analyzed, and another analysis would cost more than everything else here
    return Dataset$.MODULE$.ofRows(frame.sparkSession(), offering);
  }

  /** Whether a read has the metadata column in addition to its own columns. */
  public static boolean canOffer(StructField column, StructType schema, CaseInsensitiveStringMap options) {
    return column != null && !isOther(options) && !has(schema, column.name());
  }

  private static boolean isOther(CaseInsensitiveStringMap options) {
    for (String option : OTHER_READS) {
      String value = options.get(option);
      if (value != null && !value.equalsIgnoreCase("false")) return true;
    }
    return false;
  }

  /** Ignores the session's case sensitivity: the source knows columns by names in any case. */
  private static boolean has(StructType schema, String name) {
    return Arrays.stream(schema.fieldNames()).anyMatch(name::equalsIgnoreCase);
  }

  public String name() {
    return table.name();
  }

  public Column[] columns() {
    return table.columns();
  }

  public Map<String, String> properties() {
    return table.properties();
  }

  public Set<TableCapability> capabilities() {
    return table.capabilities();
  }

  public MetadataColumn[] metadataColumns() {
    return hidden(column);
  }

  public static MetadataColumn[] hidden(StructField column) {
    return new MetadataColumn[] {new Hidden(column.name(), column.dataType(), column.nullable())};
  }

  public ScanBuilder newScanBuilder(CaseInsensitiveStringMap options) {
    return new MetadataScanBuilder(table.newScanBuilder(options), column, status);
  }

  private record Hidden(String name, DataType dataType, boolean isNullable) implements MetadataColumn {}
}
