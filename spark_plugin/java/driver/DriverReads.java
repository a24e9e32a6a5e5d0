package pydelta.driver;

import java.util.List;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.UserDefinedExpression;
import org.apache.spark.sql.catalyst.expressions.objects.StaticInvoke;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.ReturnAnswer;
import org.apache.spark.sql.catalyst.trees.TreeNodeTag;
import org.apache.spark.sql.catalyst.trees.TreePattern;
import org.apache.spark.sql.execution.PlanLater;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.SparkStrategy;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import pydelta.rule.RuleStatus;
import pydelta.rule.Switch;
import pydelta.scan.PrunedScan;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Lets the driver's own Python read the rows of a small query when they are collected, which takes less time than a job of Spark.
 *
 * The rows of such a query are rows of one scan, from few files. Spark's plan stays below. It is shown, and it runs if Python
 * fails or finds that the rows are not few.
 */
public class DriverReads extends SparkStrategy {
  private static final String OF_SPARK = "org.apache.spark.sql.catalyst.expressions.";
  private static final String CALLS = OF_SPARK + "objects.";
  private static final TreeNodeTag<Boolean> SEEN = new TreeNodeTag<>("pydelta.driverReads.seen");

  private final RuleStatus status;

  public DriverReads(RuleStatus status) {
    this.status = status;
  }

  public Seq<SparkPlan> apply(LogicalPlan plan) {
    List<SparkPlan> plans = List.of();
    if (plan instanceof ReturnAnswer returned && !plan.getTagValue(SEEN).isDefined()) {
      LogicalPlan answer = returned.child();
      DataSourceV2ScanRelation relation = Switch.isOn(Switch.DRIVER) ? scanOf(answer) : null;
      if (relation != null) plans = List.of(new ReadByDriver(new PlanLater(seen(answer)), answer, relation, status));
    }
    return CollectionConverters.asScala(plans).toSeq();
  }

  /** The scan whose rows the plan selects from; null if it is not such a plan, or if it may read many files. */
  private DataSourceV2ScanRelation scanOf(LogicalPlan plan) {
    if (plan.isStreaming()) return null;
    LogicalPlan node = plan;
    for (; !(node instanceof DataSourceV2ScanRelation); node = node.children().head()) {
      if (!RowsAbove.canCompute(node) || !areCertain(node.expressions())) return null;
    }
    var relation = (DataSourceV2ScanRelation) node;
    return relation.scan() instanceof PrunedScan scan && scan.mayBeReadByDriver(status) ? relation : null;
  }

  /** Whether the result does not depend on who computes the expressions, when and how often. */
  private static boolean areCertain(Seq<Expression> expressions) {
    return CollectionConverters.asJava(expressions).stream().allMatch(expression -> expression.deterministic()
        && !expression.containsPattern(TreePattern.PLAN_EXPRESSION()) && isOfSpark(expression));
  }

  /**
   * Whether it has no function of a user (Python, Scala, Hive, a catalog). Some of Spark's own, as upper, call Java like a
   * catalog's.
   */
  private static boolean isOfSpark(Expression expression) {
    String name = expression.getClass().getName();
    if (!name.startsWith(OF_SPARK) || expression instanceof UserDefinedExpression) return false;
    if (name.startsWith(CALLS) && !isCallOfSpark(expression)) return false;
    return CollectionConverters.asJava(expression.children()).stream().allMatch(DriverReads::isOfSpark);
  }

  private static boolean isCallOfSpark(Expression expression) {
    return expression instanceof StaticInvoke call && call.staticObject().getName().startsWith("org.apache.spark.");
  }

  /** The plan that Spark plans without this strategy. */
  private static LogicalPlan seen(LogicalPlan answer) {
    var plan = new ReturnAnswer(answer);
    plan.setTagValue(SEEN, true);
    return plan;
  }
}
