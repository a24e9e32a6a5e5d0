package pydelta.aggregates;

import java.util.Map;
import org.apache.spark.sql.catalyst.expressions.Attribute;

/** Puts expressions in the places of attributes, which are known by their ids. */
class Replacement extends scala.runtime.AbstractPartialFunction {
  private final Map byId;

  Replacement(Map byId) {
    this.byId = byId;
  }

  public boolean isDefinedAt(Object node) {
    return node instanceof Attribute && byId.containsKey(((Attribute) node).exprId());
  }

  public Object applyOrElse(Object node, scala.Function1 otherwise) {
    return isDefinedAt(node) ? byId.get(((Attribute) node).exprId()) : otherwise.apply(node);
  }
}
