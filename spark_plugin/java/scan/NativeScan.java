package pydelta.scan;

import com.fasterxml.jackson.databind.ObjectMapper;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
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
import pydelta.rule.Lists;

/** A planned scan some of whose tasks, as the source says, may be read by Spark's own Parquet reader. */
class NativeScan {
  private static final ObjectMapper JSON = new ObjectMapper();

  private final PartitionMessages messages;
  private final ScanRequest request;
  private final String kinds;
  private final String root;
  private final StructType physical;
  private final Boolean verifyChecksums;
  private final Long mostBatchBytes;

  private NativeScan(PartitionMessages messages, ScanRequest request, Map told) throws Exception {
    this.messages = messages;
    this.request = request;
    this.kinds = (String) told.get("kinds");
    this.root = (String) told.get("root");
    this.verifyChecksums = (Boolean) told.get("verify_checksums");
    this.mostBatchBytes = Long.valueOf(((Number) told.get("most_batch_bytes")).longValue());
    this.physical = (StructType) DataType.fromJson(JSON.writeValueAsString(told.get("schema")));
    if (!DataType$.MODULE$.equalsStructurally(request.schema(), physical, true)) {
      throw new IllegalStateException("files hold " + physical.catalogString() + " for " + request.schema().catalogString());
    }
  }

  /** Null if all is for Python. */
  static NativeScan of(PartitionMessages messages, ScanRequest request) throws Exception {
    ReadPlan plan = messages.readPlan();
    return plan.has("parquet") ? new NativeScan(messages, request, plan.map("parquet")) : null;
  }

  /**
   * partitions, factory: of the scan by Python. rows: whether the factory gives rows. Partitions and factory come out, as
   * NativeReads.java makes them; null if Spark's reader has not these columns.
   */
  Object[] prepared(Function reads, InputPartition[] partitions, PartitionReaderFactory factory, boolean rows) {
    scala.Option session = SparkSession$.MODULE$.getActiveSession();
    if (session.isEmpty()) return null;
    Map scan = new HashMap();
    scan.put("schema", request.schema());
    scan.put("physical", physical);
    scan.put("kinds", kinds);
    scan.put("root", root);
    scan.put("verifyChecksums", verifyChecksums);
    scan.put("mostBatchBytes", mostBatchBytes);
    scan.put("predicates", predicates());
    scan.put("session", session.get());
    scan.put("partitions", partitions);
    scan.put("files", files(partitions.length));
    scan.put("factory", factory);
    scan.put("rows", Boolean.valueOf(rows));
    return (Object[]) reads.apply(scan);
  }

  private byte[][] files(int count) {
    byte[][] files = new byte[count][];
    for (int i = 0; i < count; i++) files[i] = messages.bytes(i, "files");
    return files;
  }

  // ---------------------------------------------------------------- predicates, by the names in files

  /** Spark's reader leaves out row groups by them; all stay in Spark's plan. */
  private List predicates() {
    List found = new ArrayList();
    for (int i = 0; i < request.predicates().size(); i++) {
      Predicate renamed = renamed(((PredicateJson) request.predicates().get(i)).predicate());
      if (renamed != null) found.add(renamed);
    }
    return found;
  }

  /** Null for one that is not of plain columns of files alone. */
  private Predicate renamed(Predicate predicate) {
    Expression[] children = predicate.children();
    Expression[] inner = new Expression[children.length];
    for (int i = 0; i < children.length; i++) {
      if (children[i] instanceof NamedReference) inner[i] = renamed((NamedReference) children[i]);
      else if (children[i] instanceof Predicate && !(children[i] instanceof Literal)) inner[i] = renamed((Predicate) children[i]);
      else inner[i] = children[i];  // TRUE and FALSE are predicates and constants
      if (inner[i] == null) return null;
    }
    if (predicate instanceof And) return new And((Predicate) inner[0], (Predicate) inner[1]);
    if (predicate instanceof Or) return new Or((Predicate) inner[0], (Predicate) inner[1]);
    if (predicate instanceof Not) return new Not((Predicate) inner[0]);
    return new Predicate(predicate.name(), inner);
  }

  private NamedReference renamed(NamedReference reference) {
    String[] path = reference.fieldNames();
    StructField[] fields = request.schema().fields();
    for (int i = 0; i < fields.length && path.length == 1; i++) {
      if (!fields[i].name().equals(path[0])) continue;
      DataType type = fields[i].dataType();
      // Spark's reader leaves out row groups whose dictionary has -0.0 where 0.0 is asked for.
      boolean isFloat = type.equals(DataTypes.FloatType) || type.equals(DataTypes.DoubleType);
      if (kinds.charAt(i) != 'd' || isFloat) return null;
      List parts = new ArrayList();
      parts.add(physical.fields()[i].name());
      return new FieldReference(Lists.toScala(parts));
    }
    return null;
  }
}
