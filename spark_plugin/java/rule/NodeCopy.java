package pydelta.rule;

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;

/** A copy of a plan's node with other values in some fields. It works with additional fields of later versions of Spark. */
public class NodeCopy {
  private NodeCopy() {}

  /** before: the value of a field, known by identity. after: its value in the copy. */
  public record Change(Object before, Object after) {}

  public static LogicalPlan with(LogicalPlan node, Change... changes) {
    Object[] fields = new Object[node.productArity()];
    for (int i = 0; i < fields.length; i++) fields[i] = valueInCopy(node.productElement(i), changes);
    return node.makeCopy(fields);
  }

  private static Object valueInCopy(Object value, Change[] changes) {
    for (Change change : changes) {
      if (change.before == value) return change.after;
    }
    return value;
  }
}
