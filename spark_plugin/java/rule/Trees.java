package pydelta.rule;

import java.util.List;
import java.util.function.UnaryOperator;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import scala.PartialFunction;

/** Trees of Spark's plans and expressions. */
public class Trees {
  private Trees() {}

  /** All nodes of a tree, each before its children. Plans inside of expressions are not included. */
  public static <T extends TreeNode<T>> List<T> nodes(T root) {
    return Lists.toJava(root.<T>map(node -> node));
  }

  /**
   * A change in the form of Spark's transformDown and transformUp. It returns the same object for a node that does not change.
   */
  public static <T extends TreeNode<T>> PartialFunction<T, T> change(UnaryOperator<T> change) {
    return PartialFunction.fromFunction(change::apply);
  }
}
