package pydelta.driver;

import java.util.Iterator;
import java.util.NoSuchElementException;
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

/**
 * The rows of a plan of filters, projections and limits over rows that are there, one at a time: behind a limit none is computed.
 *
 * No code is compiled for them, as they are few. A row is good until the next one.
 */
abstract class RowsAbove implements Iterator {
  private InternalRow next = null;

  static boolean canCompute(LogicalPlan node) {
    return node instanceof Project || node instanceof Filter || node instanceof GlobalLimit || node instanceof LocalLimit;
  }

  /** node: the leaf, or above it one that can be computed. rows: of the leaf, InternalRow each. */
  static Iterator of(LogicalPlan node, LogicalPlan leaf, Iterator rows) {
    if (node == leaf) return rows;
    LogicalPlan child = node.children().head();
    Iterator below = of(child, leaf, rows);
    if (node instanceof Filter) return filtered(below, bound(((Filter) node).condition(), child));
    if (node instanceof Project) return projected(below, ((Project) node).projectList(), child.output());
    Expression limit = node instanceof GlobalLimit ? ((GlobalLimit) node).limitExpr() : ((LocalLimit) node).limitExpr();
    return first(below, ((Integer) limit.eval(null)).intValue());
  }

  private static Expression bound(Expression expression, LogicalPlan child) {
    return BindReferences$.MODULE$.bindReference(expression, package$.MODULE$.AttributeSeq(child.output()), false);
  }

  private static Iterator filtered(final Iterator rows, Expression condition) {
    final BasePredicate predicate = new InterpretedPredicate(condition);
    predicate.initialize(0);
    return new RowsAbove() {
      InternalRow found() {
        while (rows.hasNext()) {
          InternalRow row = (InternalRow) rows.next();
          if (predicate.eval(row)) return row;
        }
        return null;
      }
    };
  }

  private static Iterator projected(final Iterator rows, Seq expressions, Seq input) {
    final InterpretedMutableProjection projection = new InterpretedMutableProjection(expressions, input);
    projection.initialize(0);
    return new RowsAbove() {
      InternalRow found() {
        return rows.hasNext() ? projection.apply((InternalRow) rows.next()) : null;
      }
    };
  }

  private static Iterator first(final Iterator rows, final int most) {
    return new RowsAbove() {
      private int left = most;

      InternalRow found() {
        return left-- > 0 && rows.hasNext() ? (InternalRow) rows.next() : null;
      }
    };
  }

  /** The next row; null if there is none. */
  abstract InternalRow found();

  public boolean hasNext() {
    if (next == null) next = found();
    return next != null;
  }

  public Object next() {
    if (!hasNext()) throw new NoSuchElementException();
    InternalRow row = next;
    next = null;
    return row;
  }
}
