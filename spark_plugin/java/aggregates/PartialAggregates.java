package pydelta.aggregates;

import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.ExprId;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import org.apache.spark.sql.types.Metadata;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import pydelta.rule.Lists;
import pydelta.rule.NodeCopy;
import pydelta.rule.RuleStatus;
import pydelta.rule.Switch;
import pydelta.rule.WantedRows;
import pydelta.scan.ColumnarChoice;
import pydelta.scan.PrunedScan;

/**
 * Lets the tasks that read rows also add them up, for an aggregate over our scan that then adds up their results.
 *
 * The scan under the aggregate is replaced by a scan of partial rows, as LogAnswers replaces it by the log's answer. Projections
 * between the two stay. Filters go into the scan, which leaves out exactly the other rows. An aggregate that needs anything else
 * of the rows stays as it is, and so does one that the source refuses, or for which it fails.
 */
public final class PartialAggregates extends AggregateRule<PartialQuestion> {
  private final RuleStatus status;
  private final ColumnarChoice batches;
  private final int mostGroupColumns;

  private PartialAggregates(RuleStatus status, ColumnarChoice batches, int mostGroupColumns) {
    this.status = status;
    this.batches = batches;
    this.mostGroupColumns = mostGroupColumns;
  }

  /** The plan with partial rows in it; the same object if there are none. mostGroupColumns: from read_limits.py. */
  public static LogicalPlan in(LogicalPlan plan, RuleStatus status, ColumnarChoice batches, int mostGroupColumns) {
    if (!Switch.isOn(Switch.PARTIAL)) return plan;
    return new PartialAggregates(status, batches, mostGroupColumns).in(plan);
  }

  void done() {
    status.used(Switch.PARTIAL);
  }

  void failed(Throwable error) {
    status.failed(Switch.PARTIAL, error, null);
  }

  /** The source leaves out the rows that filters exclude. */
  boolean keepsFilters() {
    return false;
  }

  /** Null if the aggregate needs more than partial rows, or the source does not return them. */
  LogicalPlan replaced(Aggregate aggregate, DataSourceV2ScanRelation relation) throws Exception {
    PrunedScan scan = (PrunedScan) relation.scan();
    if (!scan.mayAsk(Switch.PARTIAL) || !WantedRows.isExact(aggregate.child(), relation)) return null;
    PartialQuestion question = new PartialQuestion(aggregate.child());
    List<NamedExpression> results = question.rewritten(aggregate.aggregateExpressions());
    if (results == null || !question.isPlain()) return null;
    int width = question.answerColumns().size() - 1 + aggregate.groupingExpressions().length();
    if (!Switch.isPreferred(Switch.PARTIAL) && !scan.source().planForMessages().areWorthAdding(width)) {
      status.skipped(Switch.PARTIAL, "the files are too small for what is added up of a row");
      return null;
    }
    Set<ExprId> needed = question.needed(results, aggregate.groupingExpressions());
    LogicalPlan below = below(aggregate.child(), question, needed, relation);
    return below == null ? null
        : new Aggregate(aggregate.groupingExpressions(), Lists.toScala(results), below, aggregate.hint());
  }

  /** The scan of partial rows; null if there is none. */
  LogicalPlan inPlace(PartialQuestion question, List<Attribute> by, DataSourceV2ScanRelation relation) {
    if (by.size() > mostGroupColumns) return null;
    PrunedScan scan = (PrunedScan) relation.scan();
    var output = new ArrayList<Attribute>(by);
    output.addAll(question.answerColumns());
    Set<String> names = question.namedColumns();
    StructField[] fields = new StructField[output.size()];
    for (int i = 0; i < fields.length; i++) {
      Attribute column = output.get(i);
      if (i < by.size() && !PartialQuestion.isGroup(column)) return null;
      if (i < by.size()) names.add(column.name());
      String name = i < by.size() ? column.name() : "partial " + i;
      fields[i] = new StructField(name, column.dataType(), column.nullable(), i == 0 ? scan.tableMetadata() : Metadata.empty());
    }
    StructType schema = new StructType(fields);
    StructType columns = scan.fullSchema();
    if (names.stream().anyMatch(name -> columns.getFieldIndex(name).isEmpty())) return null;
    StructType read = new StructType(names.stream().map(columns::apply).toArray(StructField[]::new));
    String json = question.json(by, read);
    PrunedScan partial = scan.partially(json, schema, batches.pythonReadersFor(schema));
    if (partial == null) return null;
    return NodeCopy.with(
        relation, new NodeCopy.Change(scan, partial), new NodeCopy.Change(relation.output(), Lists.toScala(output)));
  }
}
