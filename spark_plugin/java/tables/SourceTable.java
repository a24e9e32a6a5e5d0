package pydelta.tables;

import java.util.Arrays;
import java.util.EnumSet;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.connector.catalog.MetadataColumn;
import org.apache.spark.sql.connector.catalog.SupportsDeleteV2;
import org.apache.spark.sql.connector.catalog.SupportsMetadataColumns;
import org.apache.spark.sql.connector.catalog.SupportsRowLevelOperations;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.expressions.Expressions;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.read.ScanBuilder;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.RowLevelOperationBuilder;
import org.apache.spark.sql.connector.write.RowLevelOperationInfo;
import org.apache.spark.sql.connector.write.WriteBuilder;
import org.apache.spark.sql.execution.datasources.v2.python.PythonDataSourceV2;
import org.apache.spark.sql.execution.datasources.v2.python.PythonTable;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import pydelta.rule.PruneScans;

/**
 * Spark's own table of a Python source, with the path and version of the table. It is a PythonTable, so the optimizer rule knows
 * its scans.
 *
 * It is pinned to one version when it is loaded. A read with further options (WITH, or of a reader) asks the source again, at the
 * same version.
 */
public class SourceTable extends PythonTable implements SupportsMetadataColumns, SupportsRowLevelOperations, SupportsDeleteV2 {
  private final String name;
  private final StructType columns;
  private final TableFacts facts;
  private final CaseInsensitiveStringMap options;
  private final Map<String, String> entry;

  /** options: of the open source. entry: properties of the entry in the session catalog; empty for a table named by its path. */
  public SourceTable(
      PythonDataSourceV2 source, String name, StructType columns, TableFacts facts, Map<String, String> options,
      Map<String, String> entry) {
    super(source, Source.FORMAT, columns);
    this.name = name;
    this.columns = columns;
    this.facts = facts;
    this.options = new CaseInsensitiveStringMap(options);
    this.entry = entry;
  }

  public String name() {
    return name;
  }

  public Set<TableCapability> capabilities() {
    if (facts.travels()) return EnumSet.of(TableCapability.BATCH_READ);
    return EnumSet.of(
        TableCapability.BATCH_READ, TableCapability.BATCH_WRITE, TableCapability.TRUNCATE,
        TableCapability.OVERWRITE_BY_FILTER, TableCapability.OVERWRITE_DYNAMIC);
  }

  public Transform[] partitioning() {
    return Arrays.stream(facts.partitionColumns()).map(Columns::quoted).map(Expressions::identity).toArray(Transform[]::new);
  }

  public Map<String, String> properties() {
    Map<String, String> properties = facts.properties();
    if (facts.description() != null) properties.put("comment", facts.description());
    properties.put("provider", Source.FORMAT);
    properties.put("location", facts.path());
    properties.put("external", "true");
    if (!entry.isEmpty()) {
      properties.remove("external");
      entry.forEach((property, value) -> {
        if (!property.startsWith("delta.")) properties.put(property, value);
      });
    }
    return properties;
  }

  /** Whether each read with these options gives the same rows. */
  public boolean isPinned(CaseInsensitiveStringMap requested) {
    return !isOn("followLatest", requested) && !isOn("ignoreMissingFiles", requested);
  }

  private boolean isOn(String option, CaseInsensitiveStringMap requested) {
    return options.getBoolean(option, false) || requested.getBoolean(option, false);
  }

  // ---------------------------------------------------------------- reading

  public MetadataColumn[] metadataColumns() {
    return rule().metadataColumns(columns, options);
  }

  public ScanBuilder newScanBuilder(CaseInsensitiveStringMap requested) {
    Options.refusePrivate(requested);
    Options.refusePath(requested, options.get("path"));
    var further = new HashMap<>(requested);
    if (facts.travels()) {  // Spark has asked the catalog for the version that these options name
      further.remove("versionasof");
      further.remove("timestampasof");
    }
    further.keySet().removeIf(option -> options.containsKey(option) && options.get(option).equals(requested.get(option)));
    ScanBuilder whole = further.isEmpty() ? super.newScanBuilder(options) : anew(further);
    return metadataColumns().length == 0 ? whole : rule().withMetadata(whole);
  }

  /** further: by lower-case names. */
  private ScanBuilder anew(Map<String, String> further) {
    var all = new HashMap<>(options);
    all.put("path", facts.path());
    all.remove("timestampasof");
    boolean follows = new CaseInsensitiveStringMap(further).getBoolean("followLatest", false);
    if (follows) all.remove("versionasof");
    else if (facts.version() != null) all.put("versionasof", facts.version());
    all.putAll(further);
    return new PythonTable(Source.source(), Source.FORMAT, columns).newScanBuilder(new CaseInsensitiveStringMap(all));
  }

  // ---------------------------------------------------------------- writing

  public WriteBuilder newWriteBuilder(LogicalWriteInfo info) {
    refuseWrites();
    Map<String, String> own = Source.privateOptions(facts.path());
    own.put("path", facts.path());
    return new SourceWriteBuilder(info, columns, own, facts.partitionColumns(), facts.properties());
  }

  private void refuseWrites() {
    if (facts.travels()) {
      throw Errors.unsupported(name + " is a table at an older version; nothing was written. Write to the table itself.");
    }
    if (facts.hasIdentity()) {
      throw Errors.unsupported(name + " has an identity column, whose numbers this road does not give; nothing was written. "
          + "Write with df.write.format('pydelta') or spark.sql('INSERT ...') of a registered session.");
    }
  }

  /**
   * Refuses a DELETE, UPDATE or MERGE that Python did not get. Scripts want an SQLSTATE, which Spark's own refusal does not have.
   */
  public RowLevelOperationBuilder newRowLevelOperationBuilder(RowLevelOperationInfo info) {
    throw withoutPython(String.valueOf(info.command()));
  }

  /** Spark calls this for a DELETE of all rows. */
  public boolean canDeleteWhere(Predicate[] predicates) {
    throw withoutPython("DELETE");
  }

  public void deleteWhere(Predicate[] predicates) {
    throw withoutPython("DELETE");
  }

  public boolean truncateTable() {
    throw withoutPython("TRUNCATE TABLE");
  }

  private RuntimeException withoutPython(String what) {
    return Errors.unchecked(Failure.unsupported(what + " of " + name + " did not come through spark.sql of Python, but from a "
        + "script, EXECUTE IMMEDIATE or the JVM; nothing was changed. Use spark.sql or the methods of DeltaTable. In a classic "
        + "session register brings such statements to Python too, unless the setting spark.pydelta.sql.jvm.enabled is false."));
  }

  private static PruneScans rule() {
    return Source.rule();
  }
}
