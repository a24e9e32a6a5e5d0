package pydelta.driver;

import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.UserDefinedExpression;
import org.apache.spark.sql.catalyst.expressions.objects.StaticInvoke;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.ReturnAnswer;
import org.apache.spark.sql.catalyst.trees.TreeNodeTag;
import org.apache.spark.sql.catalyst.trees.TreePattern;
import org.apache.spark.sql.execution.PlanLater;
import org.apache.spark.sql.execution.SparkStrategy;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import pydelta.rule.Lists;
import pydelta.rule.RuleStatus;
import pydelta.rule.Switch;
import pydelta.scan.PrunedScan;
import scala.collection.immutable.Seq;

/**
 * Has the rows of a small query read by the driver's own Python when they are collected, which takes less time than a job of Spark's.
 *
 * The query is one whose rows are some of one scan's, from few files. Spark's plan stays below, is shown, and runs where Python finds
 * that the rows are not few, or fails.
 */
public class DriverReads extends SparkStrategy {
  private static final String OF_SPARK = "org.apache.spark.sql.catalyst.expressions.";
  private static final String CALLS = OF_SPARK + "objects.";
  private static final TreeNodeTag SEEN = new TreeNodeTag("pydelta.driverReads.seen");

  private final RuleStatus status;

  public DriverReads(RuleStatus status) {
    this.status = status;
  }

  public Seq apply(LogicalPlan plan) {
    List plans = new ArrayList();
    if (plan instanceof ReturnAnswer && !plan.getTagValue(SEEN).isDefined()) {
      LogicalPlan answer = ((ReturnAnswer) plan).child();
      DataSourceV2ScanRelation relation = Switch.isOn(Switch.DRIVER) ? scanOf(answer) : null;
      if (relation != null) plans.add(new ReadByDriver(new PlanLater(seen(answer)), answer, relation, status));
    }
    return Lists.toScala(plans);
  }

  /** The scan of which the plan gives some of the rows; null where it is not such a plan, or it may read many files. */
  private DataSourceV2ScanRelation scanOf(LogicalPlan plan) {
    if (plan.isStreaming()) return null;
    LogicalPlan node = plan;
    for (; !(node instanceof DataSourceV2ScanRelation); node = node.children().head()) {
      if (!RowsAbove.canCompute(node) || !areCertain(node.expressions())) return null;
    }
    DataSourceV2ScanRelation relation = (DataSourceV2ScanRelation) node;
    return relation.scan() instanceof PrunedScan && ((PrunedScan) relation.scan()).mayBeReadByDriver(status) ? relation : null;
  }

  /** Whether it does not matter who computes them, when and how often. */
  private static boolean areCertain(Seq expressions) {
    for (Iterator each = Lists.toJava(expressions).iterator(); each.hasNext();) {
      Expression expression = (Expression) each.next();
      if (!expression.deterministic() || expression.containsPattern(TreePattern.PLAN_EXPRESSION()) || !areOfSpark(expression)) {
        return false;
      }
    }
    return true;
  }

  /** No functions of users, of Python, Scala, Hive or a catalog, in it. Some of Spark's own (upper) call Java as those of catalogs do. */
  private static boolean areOfSpark(Expression expression) {
    String name = expression.getClass().getName();
    if (!name.startsWith(OF_SPARK) || expression instanceof UserDefinedExpression) return false;
    if (name.startsWith(CALLS) && !isCallOfSpark(expression)) return false;
    for (int i = 0; i < expression.children().length(); i++) {
      if (!areOfSpark(expression.children().apply(i))) return false;
    }
    return true;
  }

  private static boolean isCallOfSpark(Expression expression) {
    return expression instanceof StaticInvoke && ((StaticInvoke) expression).staticObject().getName().startsWith("org.apache.spark.");
  }

  /** What Spark plans without the strategy. */
  private static LogicalPlan seen(LogicalPlan answer) {
    LogicalPlan plan = new ReturnAnswer(answer);
    plan.setTagValue(SEEN, Boolean.TRUE);
    return plan;
  }
}
