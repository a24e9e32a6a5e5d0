package pydelta.aggregates;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection$;
import org.apache.spark.sql.catalyst.plans.logical.LocalRelation;
import org.apache.spark.sql.execution.arrow.ArrowConverters$;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CloseableIterator;
import pydelta.rule.Lists;
import pydelta.scan.PrunedScan;
import scala.Tuple2;

/** The source's answer to a LogQuestion: an Arrow stream. */
public class LogAnswer {
  private LogAnswer() {}

  /** The answer as a relation over the attributes `by` and the columns told; null if the log does not say. */
  static LocalRelation relation(LogQuestion question, List by, PrunedScan scan) throws Exception {
    byte[] answer = scan.ask(question, by);
    if (answer == null) return null;
    List attributes = new ArrayList(by);
    attributes.addAll(question.told());
    List data = rows(answer, attributes);
    return new LocalRelation(Lists.toScala(attributes), Lists.toScala(data), false, (scala.Option) scala.None$.MODULE$);
  }

  /** The rows of an Arrow stream, whose columns must have the types of the attributes. */
  public static List rows(byte[] stream, List attributes) throws Exception {
    Tuple2 read = ArrowConverters$.MODULE$.fromIPCStream(stream);
    CloseableIterator rows = (CloseableIterator) read._1();
    try {
      return copies(rows, (StructType) read._2(), attributes);
    } finally {
      rows.close();
    }
  }

  private static List copies(CloseableIterator rows, StructType schema, List attributes) {
    StructField[] fields = schema.fields();
    boolean same = fields.length == attributes.size();
    for (int i = 0; same && i < fields.length; i++) {
      same = fields[i].dataType().equals(((Attribute) attributes.get(i)).dataType());
    }
    if (!same) throw new IllegalStateException("asked for " + attributes + " Python says " + schema.catalogString());
    scala.Function1 projection = UnsafeProjection$.MODULE$.create(schema);
    List copies = new ArrayList();
    while (rows.hasNext()) copies.add(((InternalRow) projection.apply(rows.next())).copy());
    return copies;
  }
}
