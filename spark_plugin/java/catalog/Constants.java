package pydelta.catalog;

import java.util.List;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression$;
import org.apache.spark.sql.catalyst.optimizer.ComputeCurrentTime$;
import org.apache.spark.sql.catalyst.optimizer.ReplaceExpressions$;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.OneRowRelation;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import pydelta.rule.Lists;
import scala.Option;
import scala.collection.immutable.Seq;

/** Values of foldable expressions. */
class Constants {
  private Constants() {}

  /** A value of Catalyst. The current time and replaceable functions are replaced as the optimizer does it. */
  static Object value(Expression expression) {
    Seq<String> none = Lists.toScala(List.of());
    var named = new Alias(expression, "value", NamedExpression$.MODULE$.newExprId(), none, Option.empty(), none);
    LogicalPlan plan = new Project(Lists.toScala(List.of(named)), new OneRowRelation());
    plan = ComputeCurrentTime$.MODULE$.apply(ReplaceExpressions$.MODULE$.apply(plan));
    return ((Alias) ((Project) plan).projectList().head()).child().eval(null);
  }
}
