package pydelta.scan;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.read.Scan;
import org.apache.spark.sql.connector.read.SupportsPushDownLimit;
import org.apache.spark.sql.connector.read.SupportsPushDownRequiredColumns;
import org.apache.spark.sql.connector.read.SupportsPushDownV2Filters;
import org.apache.spark.sql.types.NumericType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import pydelta.joins.JoinedScan;
import pydelta.messages.PredicateJson;
import pydelta.rule.RuleStatus;

/** Collects what Spark's push-down says about one scan: predicates, then a limit, then columns. */
class PrunedScanBuilder implements SupportsPushDownV2Filters, SupportsPushDownLimit, SupportsPushDownRequiredColumns {
  private static final int NO_LIMIT = -1;

  /** Spark does not pass on the options of a catalog's table; the source puts them into the metadata of its fields. */
  private static final String CATALOG_KEY = "pydelta.table";

  private final ScanRequest everything;
  private final RuleStatus status;
  private final ColumnarChoice batches;
  private final int mostLimitedRows;
  private final List<Predicate> pushedPredicates = new ArrayList<>();
  private final List<PredicateJson> predicates = new ArrayList<>();
  private StructType schema;
  private int limit = NO_LIMIT;

  /** mostLimitedRows: from read_limits.py. */
  PrunedScanBuilder(ScanRequest everything, RuleStatus status, ColumnarChoice batches, int mostLimitedRows) {
    this.everything = everything;
    this.status = status;
    this.batches = batches;
    this.mostLimitedRows = mostLimitedRows;
    this.schema = everything.schema();
  }

  /** All predicates stay in Spark's plan. So a predicate that cannot be passed to Python costs only time. */
  public Predicate[] pushPredicates(Predicate[] offered) {
    for (Predicate predicate : offered) {
      PredicateJson json = PredicateJson.of(predicate, everything.schema());
      if (json != null) {
        pushedPredicates.add(predicate);
        predicates.add(json);
      }
    }
    return offered;
  }

  public Predicate[] pushedPredicates() {
    return pushedPredicates.toArray(new Predicate[0]);
  }

  /**
   * Spark offers a limit only if there is no filter between the limit and the scan. The source then returns exactly that many
   * rows in one partition. If Spark counted again, it would stop before the end of the stream, which kills the Python worker: the
   * next query would wait for a new one.
   */
  public boolean pushLimit(int rows) {
    if (rows > mostLimitedRows || everything.schema().fields().length == 0) return false;
    limit = rows;
    return true;
  }

  public boolean isPartiallyPushed() {
    return false;
  }

  public void pruneColumns(StructType required) {
    schema = required;
  }

  public Scan build() {
    StructType columns = schema;
    // The marker that carries a limit is in the metadata of a field, and so is the path of a catalog's table.
    boolean hasMarker = limit != NO_LIMIT || namesItsTable(everything.schema());
    if (columns.fields().length == 0 && hasMarker) columns = cheapestColumn(everything.schema());
    Integer rows = limit == NO_LIMIT ? null : (Integer) limit;
    ScanRequest request = everything.narrowed(columns, predicates, rows);
    ScanReaders readers = batches.readersFor(columns);
    return JoinedScan.wanted(request) ? new JoinedScan(request, status, readers) : new PrunedScan(request, status, readers);
  }

  private static boolean namesItsTable(StructType schema) {
    return schema.fields().length > 0 && schema.fields()[0].metadata().contains(CATALOG_KEY);
  }

  private static StructType cheapestColumn(StructType schema) {
    List<StructField> fields = List.of(schema.fields());
    var numeric = fields.stream().filter(field -> field.dataType() instanceof NumericType).findFirst();
    return new StructType(new StructField[] {numeric.orElse(fields.get(0))});
  }
}
