package pydelta.rule;

import java.util.ArrayList;
import java.util.List;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/** Java's lists as Scala's, and the other way. */
public class Lists {
  private Lists() {}

  public static Seq toScala(List list) {
    return CollectionConverters.asScala(list).toSeq();
  }

  /** A copy. Scala's own may be linked lists, in which the element of a number takes a walk from the first one. */
  public static List toJava(Seq seq) {
    return new ArrayList(CollectionConverters.asJavaCollection(seq));
  }
}
