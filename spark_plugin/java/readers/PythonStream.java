package pydelta.readers;

import java.lang.reflect.Field;
import java.util.HashMap;
import java.util.List;
import org.apache.spark.TaskContext;
import org.apache.spark.sql.catalyst.InternalRow;
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
import org.apache.spark.sql.execution.metric.SQLMetric;
import org.apache.spark.sql.execution.python.MapInBatchEvaluatorFactory;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import scala.Option;
import scala.collection.Iterator;
import scala.collection.Iterator$;
import scala.collection.immutable.Map;
import scala.collection.immutable.Map$;
import scala.jdk.javaapi.CollectionConverters;

/**
 * The Arrow batches that Spark's Python worker returns for one partition. Spark's own reader makes its rows from the same
 * batches.
 *
 * Worker, socket and Arrow memory belong to Spark, which frees them when the task completes, fails or is killed.
 */
class PythonStream {
  private static final List<Class<?>> FACTORIES =
      List.of(PythonPartitionReaderFactory.class, PythonStreamingPartitionReaderFactory.class);
  private static final Class<?> EVALUATOR = MapInBatchEvaluatorFactory.class;

  private final UserDefinedPythonDataSource source;
  private final StructType schema;
  private final Map<String, SQLMetric> metrics;
  private final Iterator<ColumnarBatch> batches;

  /** factory, partition: Spark's, of a batch scan or of a stream. */
  PythonStream(PartitionReaderFactory factory, InputPartition partition, TaskContext task) {
    Class<?> owner = factory.getClass();
    this.source = read(owner, factory, "source");
    this.schema = read(owner, factory, "outputSchema");
    this.metrics = PythonCustomMetric$.MODULE$.pythonMetrics();
    Option<String> artifacts = read(owner, factory, "jobArtifactUUID");
    Option<String> session = read(owner, factory, "sessionUUID");
    MapInBatchEvaluatorFactory evaluator = source.createMapInBatchEvaluatorFactory(
        read(owner, factory, "pickledReadFunc"), "read_from_data_source",
        UserDefinedPythonDataSource$.MODULE$.readInputSchema(), schema, metrics, artifacts, session);
    StructType input = read(EVALUATOR, evaluator, "inputSchema");
    var runner = new WholeBatchRunner(
        read(EVALUATOR, evaluator, "chainedFunc"), read(EVALUATOR, evaluator, "pythonEvalType"), new int[][] {{0}},
        new StructType().add("struct", input), read(EVALUATOR, evaluator, "sessionLocalTimeZone"),
        read(EVALUATOR, evaluator, "largeVarTypes"), read(EVALUATOR, evaluator, "pythonRunnerConf"), metrics, artifacts, session);
    this.batches = runner.compute(single(single(row(row(pickled(partition))))), index(partition), task);
  }

  private static int index(InputPartition partition) {
    return partition instanceof PythonStreamingInputPartition stream
        ? stream.index() : ((PythonInputPartition) partition).index();
  }

  private static byte[] pickled(InputPartition partition) {
    return partition instanceof PythonStreamingInputPartition stream
        ? stream.pickedPartition() : ((PythonInputPartition) partition).pickedPartition();
  }

  /** Fails if this Spark lacks a field that is read here. */
  static void check() {
    for (Class<?> factory : FACTORIES) {
      checkFields(factory, "source", "pickledReadFunc", "outputSchema", "jobArtifactUUID", "sessionUUID");
    }
    checkFields(
        EVALUATOR, "chainedFunc", "inputSchema", "pythonEvalType", "sessionLocalTimeZone", "largeVarTypes", "pythonRunnerConf");
  }

  private static void checkFields(Class<?> owner, String... names) {
    for (String name : names) field(owner, name);
  }

  /** The schema of the batches' only column, which is a struct. */
  StructType schema() {
    return schema;
  }

  boolean hasNext() {
    return batches.hasNext();
  }

  /** The next batch uses the same memory. */
  ColumnarBatch next() {
    return batches.next();
  }

  CustomTaskMetric[] metricValues() {
    var values = new HashMap<String, Object>();
    CollectionConverters.asJava(metrics).forEach((name, metric) -> values.put(name, metric.value()));
    return source.createPythonTaskMetrics(Map$.MODULE$.from(CollectionConverters.asScala(values)));
  }

  private static InternalRow row(Object value) {
    return new GenericInternalRow(new Object[] {value});
  }

  private static <T> Iterator<T> single(T value) {
    return Iterator$.MODULE$.single(value);
  }

  /** T: the type of the field, which the caller knows. */
  @SuppressWarnings("unchecked")
  private static <T> T read(Class<?> owner, Object object, String name) {
    try {
      return (T) field(owner, name).get(object);
    } catch (IllegalAccessException error) {
      throw new IllegalStateException(error);
    }
  }

  /** Scala puts the class's name before that of a private field that closures use. */
  private static Field field(Class<?> owner, String name) {
    for (Field field : owner.getDeclaredFields()) {
      if (!field.getName().equals(name) && !field.getName().endsWith("$$" + name)) continue;
      field.setAccessible(true);
      return field;
    }
    throw new IllegalStateException(owner.getName() + " has no field " + name);
  }
}
