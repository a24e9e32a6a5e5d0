package pydelta.aggregates;

import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.plans.logical.Aggregate;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import pydelta.rule.Lists;
import pydelta.scan.PrunedScan;

/**
 * Finds aggregates over our scans, and puts something in the place of the scan that says all that the aggregate needs.
 *
 * There are but filters and projections between the two. An aggregate that nothing is found for is left alone, and so is one where
 * that fails.
 */
abstract class AggregateRule extends scala.runtime.AbstractPartialFunction {
  private int count = 0;

  /** The aggregate over another plan than the scan; null if there is none. */
  abstract LogicalPlan replaced(Aggregate aggregate, DataSourceV2ScanRelation relation) throws Exception;

  /** What says what the question asks, with the attributes `by`; null if nothing does. */
  abstract LogicalPlan inPlace(LogQuestion question, List by, DataSourceV2ScanRelation relation) throws Exception;

  /** Whether filters stay over what is in the scan's place. */
  abstract boolean keepsFilters();

  abstract void done();

  abstract void failed(Throwable error);

  /** The plan with all that was found; the same object if nothing was. */
  LogicalPlan in(LogicalPlan plan) {
    LogicalPlan replaced = plan.transformDown(this);
    return count == 0 ? plan : replaced;
  }

  public boolean isDefinedAt(Object node) {
    return node instanceof Aggregate && relationBelow((Aggregate) node) != null;
  }

  public Object applyOrElse(Object node, scala.Function1 otherwise) {
    if (!isDefinedAt(node)) return otherwise.apply(node);
    Aggregate aggregate = (Aggregate) node;
    try {
      LogicalPlan replaced = replaced(aggregate, relationBelow(aggregate));
      if (replaced == null) return aggregate;
      count++;
      done();
      return replaced;
    } catch (Exception error) {
      return left(aggregate, error);
    } catch (LinkageError error) {
      return left(aggregate, error);
    }
  }

  private Object left(Aggregate aggregate, Throwable error) {
    if (error instanceof InterruptedException) Thread.currentThread().interrupt();
    failed(error);
    return aggregate;
  }

  private static DataSourceV2ScanRelation relationBelow(Aggregate aggregate) {
    LogicalPlan node = aggregate.child();
    if (!node.deterministic()) return null;
    while (node instanceof Project || node instanceof Filter) node = node.children().head();
    if (!(node instanceof DataSourceV2ScanRelation relation)) return null;
    return relation.scan() instanceof PrunedScan ? relation : null;
  }

  /** The plan below the aggregate over what is in the scan's place, cut to the needed attributes; null if there is none. */
  LogicalPlan below(LogicalPlan node, LogQuestion question, Set needed, DataSourceV2ScanRelation relation) throws Exception {
    if (node == relation) return inPlace(question, question.by(needed), relation);
    LogicalPlan under = node.children().head();
    if (node instanceof Filter) {
      Expression condition = ((Filter) node).condition();
      if (keepsFilters()) LogQuestion.addReferences(condition, needed);
      LogicalPlan child = below(under, question, needed, relation);
      return child == null || !keepsFilters() ? child : new Filter(condition, child);
    }
    List kept = new ArrayList();
    Set neededBelow = LogQuestion.none();
    List all = Lists.toJava(((Project) node).projectList());
    for (int i = 0; i < all.size(); i++) {
      NamedExpression named = (NamedExpression) all.get(i);
      if (!needed.contains(named.exprId())) continue;
      kept.add(named);
      LogQuestion.addReferences((Expression) named, neededBelow);
    }
    LogicalPlan child = below(under, question, neededBelow, relation);
    if (child == null) return null;
    kept.addAll(question.told());
    return new Project(Lists.toScala(kept), child);
  }
}
