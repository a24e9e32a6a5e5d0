package pydelta.rule;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.execution.datasources.DataSourceStrategy$;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Strategy$;
import org.apache.spark.sql.types.StructType;
import pydelta.messages.PredicateJson;
import scala.collection.immutable.Seq;

/** Conditions of Spark's plans, in the form in which its push-down passes them to a source. */
public class Conditions {
  private Conditions() {}

  /** The conditions that are all true if this one is. */
  public static List<Expression> conjuncts(Expression condition) {
    var conjuncts = new ArrayList<Expression>();
    addConjuncts(condition, conjuncts);
    return conjuncts;
  }

  private static void addConjuncts(Expression condition, List<Expression> conjuncts) {
    if (condition instanceof And and) {
      addConjuncts(and.left(), conjuncts);
      addConjuncts(and.right(), conjuncts);
    } else {
      conjuncts.add(condition);
    }
  }

  /** Null if Spark would not push it down, or Python would not understand it. output: of a scan. schema: of its columns. */
  public static PredicateJson handedOver(Expression condition, Seq<? extends Attribute> output, StructType schema) {
    Seq<Expression> conditions = Lists.toScala(List.of(condition));
    Expression named = DataSourceStrategy$.MODULE$.normalizeExprs(conditions, Lists.widened(output)).head();
    var predicate = DataSourceV2Strategy$.MODULE$.translateFilterV2(named);
    return predicate.isEmpty() ? null : PredicateJson.of(predicate.get(), schema);
  }
}
