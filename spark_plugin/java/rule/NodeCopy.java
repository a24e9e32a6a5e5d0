package pydelta.rule;

import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;

/** A copy of a plan's node with other values in some fields. It works with additional fields of later versions of Spark. */
public class NodeCopy {
  private NodeCopy() {}

  /** before: values of fields, compared by identity. after: the values that replace them in the copy. */
  public static LogicalPlan with(LogicalPlan node, Object[] before, Object[] after) {
    Object[] fields = new Object[node.productArity()];
    for (int i = 0; i < fields.length; i++) {
      fields[i] = node.productElement(i);
      for (int j = 0; j < before.length; j++) {
        if (node.productElement(i) == before[j]) {
          fields[i] = after[j];
          break;
        }
      }
    }
    return node.makeCopy(fields);
  }
}
