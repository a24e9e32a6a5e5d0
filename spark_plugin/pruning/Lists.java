package pydelta.pruning;

import java.util.List;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/** Java's lists as Scala's. */
class Lists {
  private Lists() {}

  static Seq toScala(List list) {
    return CollectionConverters.asScala(list).toSeq();
  }
}
