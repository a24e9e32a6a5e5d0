package pydelta.statements;

import java.lang.reflect.Field;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.classic.SparkSession;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/** The rules of a session's analyzer that extend Spark's own. Raises if this Spark keeps them elsewhere. */
public class ResolutionRules {
  private static final String FIELD = "extendedResolutionRules";

  private ResolutionRules() {}

  /** A copy of the list. */
  public static List<Rule<LogicalPlan>> of(SparkSession session) throws Exception {
    Object analyzer = session.sessionState().analyzer();
    @SuppressWarnings("unchecked")  // it is read by reflection
    var rules = (Seq<Rule<LogicalPlan>>) fieldOf(analyzer).get(analyzer);
    return new ArrayList<>(CollectionConverters.asJava(rules));
  }

  public static void set(SparkSession session, List<Rule<LogicalPlan>> rules) throws Exception {
    Object analyzer = session.sessionState().analyzer();
    fieldOf(analyzer).set(analyzer, CollectionConverters.asScala(rules).toSeq());
  }

  private static Field fieldOf(Object analyzer) throws Exception {
    for (Class<?> kind = analyzer.getClass(); kind != null; kind = kind.getSuperclass()) {
      for (Field field : kind.getDeclaredFields()) {
        if (field.getName().equals(FIELD)) {
          field.setAccessible(true);
          return field;
        }
      }
    }
    throw new NoSuchFieldException(FIELD);
  }
}
