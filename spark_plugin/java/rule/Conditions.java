package pydelta.rule;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.execution.datasources.DataSourceStrategy$;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Strategy$;
import org.apache.spark.sql.types.StructType;
import pydelta.scan.PredicateJson;
import scala.Option;
import scala.collection.immutable.Seq;

/** Conditions of Spark's plans as its push-down would hand them over. */
public class Conditions {
  private Conditions() {}

  /** The conditions that hold where this one does, each as an Expression. */
  public static List conjuncts(Expression condition) {
    List found = new ArrayList();
    addConjuncts(condition, found);
    return found;
  }

  private static void addConjuncts(Expression condition, List found) {
    if (condition instanceof And) {
      addConjuncts(((And) condition).left(), found);
      addConjuncts(((And) condition).right(), found);
    } else {
      found.add(condition);
    }
  }

  /** Null where Spark would not hand it over, or Python would not understand it. output: of the scan, whose columns are in schema. */
  public static PredicateJson handedOver(Expression condition, Seq output, StructType schema) {
    List conditions = new ArrayList();
    conditions.add(condition);
    Seq named = DataSourceStrategy$.MODULE$.normalizeExprs(Lists.toScala(conditions), output);
    Option predicate = DataSourceV2Strategy$.MODULE$.translateFilterV2((Expression) named.head());
    return predicate.isEmpty() ? null : PredicateJson.of((Predicate) predicate.get(), schema);
  }
}
