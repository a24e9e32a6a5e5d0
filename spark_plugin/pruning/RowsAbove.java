package pydelta.pruning;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.BasePredicate;
import org.apache.spark.sql.catalyst.expressions.BindReferences$;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.InterpretedMutableProjection;
import org.apache.spark.sql.catalyst.expressions.InterpretedPredicate;
import org.apache.spark.sql.catalyst.expressions.package$;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.GlobalLimit;
import org.apache.spark.sql.catalyst.plans.logical.LocalLimit;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import scala.collection.immutable.Seq;

/** The rows of a plan of filters, projections and limits over rows that are there. No code is compiled for them: they are few. */
class RowsAbove {
  private final LogicalPlan leaf;
  private final List rows;

  /** rows: of the leaf, InternalRow each. */
  RowsAbove(LogicalPlan leaf, List rows) {
    this.leaf = leaf;
    this.rows = rows;
  }

  static boolean canCompute(LogicalPlan node) {
    return node instanceof Project || node instanceof Filter || node instanceof GlobalLimit || node instanceof LocalLimit;
  }

  /** node: the leaf, or above it one that can be computed. */
  List of(LogicalPlan node) {
    if (node == leaf) return rows;
    LogicalPlan child = (LogicalPlan) node.children().head();
    List below = of(child);
    if (node instanceof Filter) return filtered(below, bound(((Filter) node).condition(), child));
    if (node instanceof Project) return projected(below, ((Project) node).projectList(), child.output());
    Expression limit = node instanceof GlobalLimit ? ((GlobalLimit) node).limitExpr() : ((LocalLimit) node).limitExpr();
    return below.subList(0, Math.min(below.size(), ((Integer) limit.eval(null)).intValue()));
  }

  private static Expression bound(Expression expression, LogicalPlan child) {
    return (Expression) BindReferences$.MODULE$.bindReference(expression, package$.MODULE$.AttributeSeq(child.output()), false);
  }

  private static List filtered(List rows, Expression condition) {
    BasePredicate predicate = new InterpretedPredicate(condition);
    predicate.initialize(0);
    List kept = new ArrayList();
    for (int i = 0; i < rows.size(); i++) {
      if (predicate.eval((InternalRow) rows.get(i))) kept.add(rows.get(i));
    }
    return kept;
  }

  private static List projected(List rows, Seq expressions, Seq input) {
    InterpretedMutableProjection projection = new InterpretedMutableProjection(expressions, input);
    projection.initialize(0);
    List projected = new ArrayList();
    for (int i = 0; i < rows.size(); i++) projected.add(projection.apply((InternalRow) rows.get(i)).copy());
    return projected;
  }
}
