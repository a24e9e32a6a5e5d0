package pydelta.scan;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import java.util.UUID;
import java.util.stream.Collectors;
import org.apache.spark.sql.execution.datasources.v2.python.PythonDataSourceCreationResult;
import org.apache.spark.sql.execution.datasources.v2.python.PythonDataSourceV2;
import org.apache.spark.sql.types.Metadata;
import org.apache.spark.sql.types.MetadataBuilder;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import pydelta.aggregates.LogAnswers;
import pydelta.driver.DriverChoice;
import pydelta.joins.JoinedScan;
import pydelta.joins.ScanStatistics;
import pydelta.messages.PlannedScan;
import pydelta.messages.PredicateJson;
import pydelta.rule.RuleStatus;
import pydelta.rule.Switch;
import scala.Option;

/**
 * The request of one scan to one Python DataSource: columns, predicates, a limit.
 *
 * Two requests are equal if their scans return the same rows; Spark then runs a repeated part of a query once.
 *
 * fullSchema: the columns of the table. schema: of the rows. limit: null for all rows. isAgain: whether the read function of an
 * earlier request reads the rows. partial: a question of PartialQuestion; null for rows of the table.
 */
public record ScanRequest(
    PythonDataSourceV2 source, String shortName, CaseInsensitiveStringMap options, StructType fullSchema, StructType schema,
    List<PredicateJson> predicates, Integer limit, boolean isAgain, String partial) {
  public static final String MARKER_KEY = "pydelta.pruning";
  /** A private option of reads: names of Switch that the read switches off. */
  private static final String DISABLE_OPTION = "pydelta.disable";

  /** Requests every column and row. */
  public ScanRequest(PythonDataSourceV2 source, String shortName, CaseInsensitiveStringMap options, StructType fullSchema) {
    this(source, shortName, options, fullSchema, fullSchema, List.of(), null, false, null);
  }

  /** Requests one more column, which the source makes in addition to those of the full schema. */
  ScanRequest with(StructField metadataColumn) {
    StructType more = schema.add(metadataColumn);
    return new ScanRequest(source, shortName, options, fullSchema, more, predicates, limit, isAgain, partial);
  }

  /** limit: null for all rows. */
  public ScanRequest narrowed(StructType columns, List<PredicateJson> predicates, Integer limit) {
    return new ScanRequest(source, shortName, options, fullSchema, columns, List.copyOf(predicates), limit, false, null);
  }

  /** The same rows without those that further predicates exclude. The read function of this request reads them. */
  public ScanRequest again(List<PredicateJson> further) {
    var all = new ArrayList<PredicateJson>(predicates);
    all.addAll(further);
    return new ScanRequest(source, shortName, options, fullSchema, schema, all, limit, true, null);
  }

  /** Partial rows instead of the rows for which all predicates hold. question: of PartialQuestion. schema: of partial rows. */
  ScanRequest partially(String question, StructType schema) {
    return new ScanRequest(source, shortName, options, fullSchema, schema, predicates, null, false, question);
  }

  boolean isPartial() {
    return partial != null;
  }

  /** The columns that the predicates compare, as in PredicateJson. */
  Set<String> compared() {
    return predicates.stream().flatMap(predicate -> predicate.compared().stream()).collect(Collectors.toSet());
  }

  public String path() {
    return options.getOrDefault("path", "?");
  }

  /** Whether no column is read: then no field can carry a marker, and there is no predicate and no limit. */
  public boolean readsNoColumns() {
    return schema.fields().length == 0;
  }

  /** Whether there is no column that could carry a marker. */
  boolean hasNoColumns() {
    return fullSchema.fields().length == 0;
  }

  /** Whether an option of this read switches off a name of Switch. */
  public boolean disables(String name) {
    String older = Switch.JOINS.equals(name) ? JoinedScan.OPTION : LogAnswers.OPTION;
    String listed = options.getOrDefault(DISABLE_OPTION, "");
    return !options.getBoolean(older, true) || List.of(listed.split(",")).contains(name);
  }

  /**
   * Calls Python once, for the read function and the partitions. readers: for the tasks. status: learns which process has
   * planned.
   */
  PlannedScan plan(ScanReaders readers, RuleStatus status) {
    return planned(schema, wishes(readers), status);
  }

  /** The same, only for the messages. A scan without columns requests some column, and cannot be read with that plan. */
  PlannedScan planForMessages(RuleStatus status) {
    return planned(carrier(), ScanStatistics.wish(), status);
  }

  /** The same, with a question to the log. */
  PlannedScan ask(String question, ScanReaders readers, RuleStatus status) {
    return planned(carrier(), ", \"question\": " + question + wishes(readers), status);
  }

  boolean isPlannedByDriver() {
    return DriverChoice.offered(shortName) != null;
  }

  private static String wishes(ScanReaders readers) {
    return ScanStatistics.wish() + readers.wish();
  }

  private StructType carrier() {
    return readsNoColumns() ? new StructType(new StructField[] {fullSchema.fields()[0]}) : schema;
  }

  /** further: as in `marker`. Each call has an id of its own. */
  private PlannedScan planned(StructType columns, String further, RuleStatus status) {
    String scanId = newScanId();
    StructType asked = asking(columns, scanId, further);
    return new PlannedScan(DriverChoice.plan(shortName, source.source(), pythonSource(), asked, false, status), scanId);
  }

  public static String newScanId() {
    return UUID.randomUUID().toString();
  }

  private StructType asking(StructType columns, String scanId, String further) {
    return marked(columns, marker(", \"scan_id\": \"" + scanId + "\"" + further));
  }

  /** The schema that requests the files of a stream's batch. wish: NativeChoice's, or empty. */
  public StructType asking(String scanId, String wish) {
    return asking(schema, scanId, wish);
  }

  /**
   * The pickled DataSource that `load` made, in which the table's version is pinned. All queries over a DataFrame share Spark's
   * object, which is not safe for threads.
   */
  public PythonDataSourceCreationResult pythonSource() {
    synchronized (source) {
      return source.getOrCreateDataSourceInPython(shortName, options, Option.apply(fullSchema));
    }
  }

  /** Whether some column is not in the full schema. */
  private boolean asksForMore() {
    return Arrays.stream(schema.fieldNames()).anyMatch(name -> fullSchema.getFieldIndex(name).isEmpty());
  }

  /** The schema that only Python sees: the first field's metadata holds the marker. */
  private static StructType marked(StructType schema, String marker) {
    StructField[] fields = schema.fields().clone();
    if (fields.length == 0) return schema;
    StructField first = fields[0];
    Metadata marked = new MetadataBuilder().withMetadata(first.metadata()).putString(MARKER_KEY, marker).build();
    fields[0] = new StructField(first.name(), first.dataType(), first.nullable(), marked);
    return new StructType(fields);
  }

  /** further: additional fields, after a comma. */
  private String marker(String further) {
    var text = new StringBuilder("{\"predicates\": ").append(predicates.stream().map(PredicateJson::json).toList());
    text.append(", \"limit\": ").append(limit);
    if (isAgain) text.append(", \"again\": true");
    if (partial != null) text.append(", \"partial\": ").append(partial);
    else if (asksForMore()) text.append(", \"metadata_column\": true");
    return text.append(further).append("}").toString();
  }

  public boolean equals(Object object) {
    if (!(object instanceof ScanRequest other)) return false;
    return marker("").equals(other.marker(""))
        && schema.equals(other.schema)
        && fullSchema.equals(other.fullSchema)
        && options.equals(other.options)
        && (source == other.source || Arrays.equals(pythonSource().dataSource(), other.pythonSource().dataSource()));
  }

  public int hashCode() {
    return 31 * schema.hashCode() + marker("").hashCode();
  }

  /** The text leaves out the options, which may contain secrets. */
  public String toString() {
    return shortName + "[" + path() + "]";
  }
}
