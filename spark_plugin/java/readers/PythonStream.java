package pydelta.readers;

import java.lang.reflect.Field;
import org.apache.spark.TaskContext;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.connector.metric.CustomTaskMetric;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.execution.datasources.v2.python.PythonCustomMetric$;
import org.apache.spark.sql.execution.datasources.v2.python.PythonInputPartition;
import org.apache.spark.sql.execution.datasources.v2.python.PythonPartitionReaderFactory;
import org.apache.spark.sql.execution.datasources.v2.python.PythonStreamingInputPartition;
import org.apache.spark.sql.execution.datasources.v2.python.PythonStreamingPartitionReaderFactory;
import org.apache.spark.sql.execution.datasources.v2.python.UserDefinedPythonDataSource;
import org.apache.spark.sql.execution.datasources.v2.python.UserDefinedPythonDataSource$;
import org.apache.spark.sql.execution.python.ArrowPythonRunner;
import org.apache.spark.sql.execution.python.MapInBatchEvaluatorFactory;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import org.apache.spark.util.AccumulatorV2;
import scala.collection.Iterator;
import scala.collection.Iterator$;
import scala.collection.immutable.Map;
import scala.collection.immutable.Seq;

/**
 * The Arrow batches that Spark's Python worker reads of one partition: what Spark's own reader makes its rows of.
 *
 * Worker, socket and Arrow memory are Spark's, which frees them when the task completes, fails or is killed.
 */
class PythonStream {
  private static final Class[] FACTORIES = new Class[] {
      PythonPartitionReaderFactory.class, PythonStreamingPartitionReaderFactory.class};
  private static final Class EVALUATOR = MapInBatchEvaluatorFactory.class;

  private final UserDefinedPythonDataSource source;
  private final StructType schema;
  private final Map metrics;
  private final Iterator batches;

  /** factory, partition: Spark's, of a batch's scan or of a stream's. */
  PythonStream(PartitionReaderFactory factory, InputPartition partition, TaskContext task) {
    Class owner = factory.getClass();
    this.source = (UserDefinedPythonDataSource) read(owner, factory, "source");
    this.schema = (StructType) read(owner, factory, "outputSchema");
    this.metrics = PythonCustomMetric$.MODULE$.pythonMetrics();
    scala.Option artifacts = (scala.Option) read(owner, factory, "jobArtifactUUID");
    scala.Option session = (scala.Option) read(owner, factory, "sessionUUID");
    MapInBatchEvaluatorFactory evaluator = source.createMapInBatchEvaluatorFactory(
        (byte[]) read(owner, factory, "pickledReadFunc"), "read_from_data_source",
        UserDefinedPythonDataSource$.MODULE$.readInputSchema(), schema, metrics, artifacts, session);
    int[][] argument = new int[1][];
    argument[0] = new int[] {0};
    ArrowPythonRunner runner = new WholeBatchRunner(
        (Seq) read(EVALUATOR, evaluator, "chainedFunc"),
        ((Integer) read(EVALUATOR, evaluator, "pythonEvalType")).intValue(),
        argument,
        new StructType().add("struct", (StructType) read(EVALUATOR, evaluator, "inputSchema")),
        (String) read(EVALUATOR, evaluator, "sessionLocalTimeZone"),
        ((Boolean) read(EVALUATOR, evaluator, "largeVarTypes")).booleanValue(),
        (Map) read(EVALUATOR, evaluator, "pythonRunnerConf"),
        metrics, artifacts, session);
    this.batches = runner.compute(single(single(row(row(pickled(partition))))), index(partition), task);
  }

  private static int index(InputPartition partition) {
    return partition instanceof PythonStreamingInputPartition
        ? ((PythonStreamingInputPartition) partition).index() : ((PythonInputPartition) partition).index();
  }

  private static byte[] pickled(InputPartition partition) {
    return partition instanceof PythonStreamingInputPartition
        ? ((PythonStreamingInputPartition) partition).pickedPartition() : ((PythonInputPartition) partition).pickedPartition();
  }

  /** Fails on a Spark without a field that is read here. */
  static void check() {
    String[] ofFactory = new String[] {"source", "pickledReadFunc", "outputSchema", "jobArtifactUUID", "sessionUUID"};
    for (int i = 0; i < ofFactory.length; i++) {
      for (int owner = 0; owner < FACTORIES.length; owner++) field(FACTORIES[owner], ofFactory[i]);
    }
    String[] ofEvaluator = new String[] {
        "chainedFunc", "inputSchema", "pythonEvalType", "sessionLocalTimeZone", "largeVarTypes", "pythonRunnerConf"};
    for (int i = 0; i < ofEvaluator.length; i++) field(EVALUATOR, ofEvaluator[i]);
  }

  /** What the batches' one column, a struct, must hold. */
  StructType schema() {
    return schema;
  }

  boolean hasNext() {
    return batches.hasNext();
  }

  /** Its memory is used again for the next one. */
  ColumnarBatch next() {
    return (ColumnarBatch) batches.next();
  }

  CustomTaskMetric[] metricValues() {
    Map values = (Map) scala.collection.immutable.Map$.MODULE$.empty();
    Iterator named = metrics.iterator();
    while (named.hasNext()) {
      scala.Tuple2 metric = (scala.Tuple2) named.next();
      values = (Map) values.updated(metric._1(), ((AccumulatorV2) metric._2()).value());
    }
    return source.createPythonTaskMetrics(values);
  }

  private static GenericInternalRow row(Object value) {
    return new GenericInternalRow(new Object[] {value});
  }

  private static Iterator single(Object value) {
    return Iterator$.MODULE$.single(value);
  }

  private static Object read(Class owner, Object object, String name) {
    try {
      return field(owner, name).get(object);
    } catch (IllegalAccessException error) {
      throw new IllegalStateException(error);
    }
  }

  /** Scala puts the class's name before that of a private field which closures use. */
  private static Field field(Class owner, String name) {
    Field[] fields = owner.getDeclaredFields();
    for (int i = 0; i < fields.length; i++) {
      if (fields[i].getName().equals(name) || fields[i].getName().endsWith("$$" + name)) {
        fields[i].setAccessible(true);
        return fields[i];
      }
    }
    throw new IllegalStateException(owner.getName() + " has no field " + name);
  }
}
