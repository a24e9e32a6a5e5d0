package pydelta.aggregates;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection;
import org.apache.spark.sql.catalyst.expressions.UnsafeProjection$;
import org.apache.spark.sql.catalyst.plans.logical.LocalRelation;
import org.apache.spark.sql.execution.arrow.ArrowConverters$;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CloseableIterator;
import pydelta.rule.Lists;
import pydelta.scan.PrunedScan;
import scala.Option;
import scala.collection.Iterator;

/** The source's answer to a LogQuestion: an Arrow stream. */
public class LogAnswer {
  private LogAnswer() {}

  /** The answer as a relation over the attributes `by` and the answer's columns; null if the log does not have the answer. */
  static LocalRelation relation(LogQuestion question, List<Attribute> by, PrunedScan scan) throws Exception {
    byte[] answer = scan.ask(question, by);
    if (answer == null) return null;
    var attributes = new ArrayList<Attribute>(by);
    attributes.addAll(question.answerColumns());
    return new LocalRelation(Lists.toScala(attributes), Lists.toScala(rows(answer, attributes)), false, Option.empty());
  }

  /** The rows of an Arrow stream, whose columns must have the types of the attributes. */
  public static List<InternalRow> rows(byte[] stream, List<? extends Attribute> attributes) throws Exception {
    var read = ArrowConverters$.MODULE$.fromIPCStream(stream);
    CloseableIterator<InternalRow> rows = read._1();
    try {
      return copies(rows, read._2(), attributes);
    } finally {
      rows.close();
    }
  }

  private static List<InternalRow> copies(Iterator<InternalRow> rows, StructType schema, List<? extends Attribute> attributes) {
    List<DataType> types = Arrays.stream(schema.fields()).map(StructField::dataType).toList();
    if (!types.equals(attributes.stream().map(Attribute::dataType).toList())) {
      throw new IllegalStateException("asked for " + attributes + " Python says " + schema.catalogString());
    }
    UnsafeProjection projection = UnsafeProjection$.MODULE$.create(schema);
    var copies = new ArrayList<InternalRow>();
    while (rows.hasNext()) copies.add(projection.apply(rows.next()).copy());
    return copies;
  }
}
