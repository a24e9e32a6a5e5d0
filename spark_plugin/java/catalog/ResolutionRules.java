package pydelta.catalog;

import java.lang.reflect.Field;
import java.util.List;
import org.apache.spark.sql.classic.SparkSession;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/** The rules of a session's analyzer that extend Spark's own. Raises where this Spark keeps them elsewhere. */
class ResolutionRules {
  private static final String FIELD = "extendedResolutionRules";

  private ResolutionRules() {}

  static Seq of(SparkSession session) throws Exception {
    Object analyzer = session.sessionState().analyzer();
    return (Seq) fieldOf(analyzer.getClass()).get(analyzer);
  }

  static void set(SparkSession session, List rules) throws Exception {
    Object analyzer = session.sessionState().analyzer();
    fieldOf(analyzer.getClass()).set(analyzer, CollectionConverters.asScala(rules).toSeq());
  }

  private static Field fieldOf(Class kind) throws Exception {
    for (Class one = kind; one != null; one = one.getSuperclass()) {
      Field[] fields = one.getDeclaredFields();
      for (int i = 0; i < fields.length; i++) {
        if (fields[i].getName().equals(FIELD)) {
          fields[i].setAccessible(true);
          return fields[i];
        }
      }
    }
    throw new NoSuchFieldException(FIELD);
  }
}
