package pydelta.scan;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import org.apache.spark.sql.classic.SparkSession$;
import org.apache.spark.sql.connector.expressions.Expression;
import org.apache.spark.sql.connector.expressions.FieldReference;
import org.apache.spark.sql.connector.expressions.Literal;
import org.apache.spark.sql.connector.expressions.NamedReference;
import org.apache.spark.sql.connector.expressions.filter.And;
import org.apache.spark.sql.connector.expressions.filter.Not;
import org.apache.spark.sql.connector.expressions.filter.Or;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataType$;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import pydelta.messages.PartitionMessages;
import pydelta.messages.ReadPlan;
import pydelta.parquet.NativeRequest;
import pydelta.rule.Lists;

/** A planned scan that has tasks which Spark's Parquet reader may read, as the source says. */
class NativeScan {
  private final PartitionMessages messages;
  private final ScanRequest request;
  private final JsonNode plan;
  private final String kinds;
  private final StructType physical;

  private NativeScan(PartitionMessages messages, ScanRequest request, JsonNode plan) {
    this.messages = messages;
    this.request = request;
    this.plan = plan;
    this.kinds = plan.get("kinds").textValue();
    this.physical = (StructType) DataType.fromJson(plan.get("schema").toString());
    if (!DataType$.MODULE$.equalsStructurally(request.schema(), physical, true)) {
      throw new IllegalStateException("files hold " + physical.catalogString() + " for " + request.schema().catalogString());
    }
  }

  /** Null if Python reads all tasks. */
  static NativeScan of(PartitionMessages messages, ScanRequest request) {
    ReadPlan plan = messages.readPlan();
    return plan.has("parquet") ? new NativeScan(messages, request, plan.part("parquet")) : null;
  }

  /** What Spark's reader needs to know. python: reads the partitions in Python. Null if there is no active session. */
  NativeRequest request(InputPartition[] partitions, PartitionReaderFactory python, boolean pythonGivesRows) {
    var session = SparkSession$.MODULE$.getActiveSession();
    if (session.isEmpty()) return null;
    return new NativeRequest(
        session.get(), request.schema(), physical, kinds, plan.get("root").textValue(), predicates(),
        plan.get("verify_checksums").booleanValue(), plan.get("most_batch_bytes").longValue(), partitions,
        files(partitions.length), python, pythonGivesRows);
  }

  private byte[][] files(int count) {
    byte[][] files = new byte[count][];
    for (int i = 0; i < count; i++) files[i] = messages.bytes(i, "files");
    return files;
  }

  // ---------------------------------------------------------------- predicates, by the names in files

  /** Spark's reader uses them to leave out row groups; all of them stay in Spark's plan. */
  private List<Predicate> predicates() {
    return request.predicates().stream().map(json -> renamed(json.predicate())).filter(Objects::nonNull).toList();
  }

  /** Null if the predicate is not only about plain columns of files. */
  private Predicate renamed(Predicate predicate) {
    Expression[] inner = Arrays.copyOf(predicate.children(), predicate.children().length, Expression[].class);
    for (int i = 0; i < inner.length; i++) {  // TRUE and FALSE are both predicates and constants, and stay
      if (inner[i] instanceof NamedReference reference) inner[i] = renamed(reference);
      else if (inner[i] instanceof Predicate child && !(child instanceof Literal)) inner[i] = renamed(child);
      if (inner[i] == null) return null;
    }
    if (predicate instanceof And) return new And((Predicate) inner[0], (Predicate) inner[1]);
    if (predicate instanceof Or) return new Or((Predicate) inner[0], (Predicate) inner[1]);
    if (predicate instanceof Not) return new Not((Predicate) inner[0]);
    return new Predicate(predicate.name(), inner);
  }

  /** Null for a nested column, and for one whose values are not in the files (kinds: see NativeRequest). */
  private NamedReference renamed(NamedReference reference) {
    String[] path = reference.fieldNames();
    StructField[] fields = request.schema().fields();
    for (int i = 0; i < fields.length && path.length == 1; i++) {
      if (!fields[i].name().equals(path[0])) continue;
      DataType type = fields[i].dataType();
      // Spark's reader leaves out row groups whose dictionary has -0.0 if the predicate compares with 0.0.
      boolean isFloat = type.equals(DataTypes.FloatType) || type.equals(DataTypes.DoubleType);
      if (kinds.charAt(i) != 'd' || isFloat) return null;
      return new FieldReference(Lists.toScala(List.of(physical.fields()[i].name())));
    }
    return null;
  }
}
