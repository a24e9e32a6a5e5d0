package pydelta.driver;

import java.util.List;
import java.util.stream.Stream;
import org.apache.spark.sql.catalyst.InternalRow;
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
import scala.jdk.javaapi.CollectionConverters;

/**
 * The rows of a plan of filters, projections and limits over the rows of its leaf, one at a time. No row is computed after the
 * last row of a limit.
 *
 * No code is compiled for them, because they are few. A row is valid until the next one.
 */
class RowsAbove {
  private RowsAbove() {}

  static boolean canCompute(LogicalPlan node) {
    return node instanceof Project || node instanceof Filter || node instanceof GlobalLimit || node instanceof LocalLimit;
  }

  /** node: the leaf, or a node above it that can be computed. rows: of the leaf. */
  static Stream<InternalRow> of(LogicalPlan node, LogicalPlan leaf, Stream<InternalRow> rows) {
    if (node == leaf) return rows;
    LogicalPlan child = node.children().head();
    Stream<InternalRow> below = of(child, leaf, rows);
    if (node instanceof Filter filter) return filtered(below, bound(filter.condition(), child));
    if (node instanceof Project project) return projected(below, project, child);
    Expression limit = node instanceof GlobalLimit global ? global.limitExpr() : ((LocalLimit) node).limitExpr();
    return below.limit((Integer) limit.eval(null));
  }

  private static Expression bound(Expression expression, LogicalPlan child) {
    return BindReferences$.MODULE$.bindReference(expression, package$.MODULE$.AttributeSeq(child.output()), false);
  }

  private static Stream<InternalRow> filtered(Stream<InternalRow> rows, Expression condition) {
    var predicate = new InterpretedPredicate(condition);
    predicate.initialize(0);
    return rows.filter(predicate::eval);
  }

  private static Stream<InternalRow> projected(Stream<InternalRow> rows, Project project, LogicalPlan child) {
    List<Expression> expressions =
        CollectionConverters.asJava(project.projectList()).stream().map(Expression.class::cast).toList();
    var projection = new InterpretedMutableProjection(CollectionConverters.asScala(expressions).toSeq(), child.output());
    projection.initialize(0);
    return rows.map(projection::apply);
  }
}
