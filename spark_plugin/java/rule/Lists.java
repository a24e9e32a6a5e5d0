package pydelta.rule;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import scala.collection.Iterable;
import scala.collection.immutable.Map$;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/** Java's lists and maps as Scala's, and the other way. */
public class Lists {
  private Lists() {}

  public static <T> Seq<T> toScala(List<? extends T> list) {
    return CollectionConverters.asScala(Collections.<T>unmodifiableList(list)).toSeq();
  }

  public static <K, V> scala.collection.immutable.Map<K, V> toScala(Map<K, V> map) {
    return Map$.MODULE$.from(CollectionConverters.asScala(map));
  }

  /** The same object: in Scala, a sequence of a class is a sequence of each superclass, in Java it is not. */
  @SuppressWarnings("unchecked")
  public static <T> Seq<T> widened(Seq<? extends T> sequence) {
    return (Seq<T>) sequence;
  }

  /** A copy. Scala's sequences may be linked lists, in which access by index starts from the first element. */
  public static <T> List<T> toJava(Iterable<? extends T> elements) {
    return new ArrayList<>(CollectionConverters.asJavaCollection(elements));
  }
}
