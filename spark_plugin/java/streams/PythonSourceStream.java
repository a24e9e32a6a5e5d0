package pydelta.streams;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.execution.datasources.v2.python.PythonDataSourceReadInfo;
import org.apache.spark.sql.execution.datasources.v2.python.PythonMicroBatchStreamWithTriggerAvailableNow;
import org.apache.spark.sql.execution.datasources.v2.python.PythonStreamingPartitionReaderFactory;
import org.apache.spark.sql.types.StructType;
import pydelta.driver.DriverChoice;
import pydelta.rule.RuleStatus;
import pydelta.scan.ScanRequest;
import scala.None$;
import scala.Option;

/**
 * Spark's stream of a Python source. StreamScans puts a StreamView of it into the plan of each batch, and Spark counts the rows of a
 * batch by the stream of its scan: so a stream equals its views.
 */
class PythonSourceStream extends PythonMicroBatchStreamWithTriggerAvailableNow {
  private final ScanRequest request;
  private final RuleStatus status;

  /** StructType of some columns -> the function that reads these, as bytes. */
  private final Map functions = new HashMap();

  PythonSourceStream(ScanRequest request, StreamRunner runner, RuleStatus status) {
    super(request.source(), request.shortName(), request.schema(), request.options(), runner);
    this.request = request;
    this.status = status;
  }

  /** All columns. */
  StructType schema() {
    return request.schema();
  }

  /** What a batch that reads some of the columns asks. predicates: PredicateJson. */
  ScanRequest request(StructType columns, List predicates) {
    return request.narrowed(columns, predicates, null);
  }

  /** Of all columns, for a batch that the rule has left as it was. */
  public PartitionReaderFactory createReaderFactory() {
    return factory(schema());
  }

  /** Spark's own factory, of readers that give some of the columns. */
  PartitionReaderFactory factory(StructType columns) {
    Option none = (Option) None$.MODULE$;
    return new PythonStreamingPartitionReaderFactory(request.source().source(), function(columns), columns, none, none);
  }

  synchronized byte[] function(StructType columns) {
    byte[] known = (byte[]) functions.get(columns);
    if (known == null) {
      PythonDataSourceReadInfo info = DriverChoice.plan(
          request.shortName(), request.source().source(), request.pythonSource(), columns, true, status);
      known = info.func();
      functions.put(columns, known);
    }
    return known;
  }

  public boolean equals(Object object) {
    return object == this || object instanceof StreamView && ((StreamView) object).stream() == this;
  }

  public int hashCode() {
    return System.identityHashCode(this);
  }

  /** What a query's progress says of its source. */
  public String toString() {
    return request.shortName() + "[" + request.path() + "]";
  }
}
