package pydelta.aggregates;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.ExprId;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import pydelta.rule.Lists;
import pydelta.rule.Trees;
import pydelta.scan.PrunedScan;

/**
 * Finds aggregates over our scans, and replaces each scan by a relation that has all that the aggregate needs.
 *
 * There are only filters and projections between the two. An aggregate stays as it is if there is no replacement, or if making it
 * fails.
 */
abstract sealed class AggregateRule<Q extends LogQuestion> permits LogAnswers, PartialAggregates {
  private int count = 0;

  /** The aggregate over another plan than the scan; null if there is no such plan. */
  abstract LogicalPlan replaced(Aggregate aggregate, DataSourceV2ScanRelation relation) throws Exception;

  /** The relation that answers the question, with the attributes `by`; null if there is none. */
  abstract LogicalPlan inPlace(Q question, List<Attribute> by, DataSourceV2ScanRelation relation) throws Exception;

  /** Whether filters stay above the relation that replaces the scan. */
  abstract boolean keepsFilters();

  abstract void done();

  abstract void failed(Throwable error);

  /** The plan with all replacements; the same object if there are none. */
  LogicalPlan in(LogicalPlan plan) {
    LogicalPlan replaced = plan.transformDown(Trees.change(this::changed));
    return count == 0 ? plan : replaced;
  }

  private LogicalPlan changed(LogicalPlan node) {
    if (!(node instanceof Aggregate aggregate)) return node;
    DataSourceV2ScanRelation relation = relationBelow(aggregate);
    if (relation == null) return node;
    try {
      LogicalPlan replaced = replaced(aggregate, relation);
      if (replaced == null) return aggregate;
      count++;
      done();
      return replaced;
    } catch (Exception | LinkageError error) {
      if (error instanceof InterruptedException) Thread.currentThread().interrupt();
      failed(error);
      return aggregate;
    }
  }

  private static DataSourceV2ScanRelation relationBelow(Aggregate aggregate) {
    LogicalPlan node = aggregate.child();
    if (!node.deterministic()) return null;
    while (node instanceof Project || node instanceof Filter) node = node.children().head();
    if (!(node instanceof DataSourceV2ScanRelation relation)) return null;
    return relation.scan() instanceof PrunedScan ? relation : null;
  }

  /**
   * The plan below the aggregate over the relation that replaces the scan, with only the needed attributes; null if there is
   * none.
   */
  LogicalPlan below(LogicalPlan node, Q question, Set<ExprId> needed, DataSourceV2ScanRelation relation) throws Exception {
    if (node == relation) return inPlace(question, question.by(needed), relation);
    LogicalPlan under = node.children().head();
    if (node instanceof Filter filter) {
      Expression condition = filter.condition();
      if (keepsFilters()) LogQuestion.addReferences(condition, needed);
      LogicalPlan child = below(under, question, needed, relation);
      return child == null || !keepsFilters() ? child : new Filter(condition, child);
    }
    var outputs = new ArrayList<NamedExpression>();
    var neededBelow = new HashSet<ExprId>();
    for (NamedExpression named : Lists.toJava(((Project) node).projectList())) {
      if (!needed.contains(named.exprId())) continue;
      outputs.add(named);
      LogQuestion.addReferences((Expression) named, neededBelow);
    }
    LogicalPlan child = below(under, question, neededBelow, relation);
    if (child == null) return null;
    outputs.addAll(question.answerColumns());
    return new Project(Lists.toScala(outputs), child);
  }
}
