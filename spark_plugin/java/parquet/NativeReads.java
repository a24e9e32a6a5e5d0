package pydelta.parquet;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Objects;
import java.util.function.BinaryOperator;
import java.util.function.Function;
import java.util.stream.Stream;
import org.apache.hadoop.fs.Path;
import org.apache.parquet.hadoop.ParquetInputFormat;
import org.apache.spark.paths.SparkPath$;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.execution.arrow.ArrowConverters$;
import org.apache.spark.sql.execution.datasources.FileFormat$;
import org.apache.spark.sql.execution.datasources.PartitionedFile;
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat;
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat$;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.internal.SQLConf$;
import org.apache.spark.sql.internal.connector.PredicateUtils$;
import org.apache.spark.sql.sources.And;
import org.apache.spark.sql.sources.Filter;
import org.apache.spark.sql.sources.Not;
import org.apache.spark.sql.sources.Or;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import scala.Function1;
import scala.collection.Iterator;
import scala.collection.immutable.Map$;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/** Spark's Parquet reader, on the driver. */
public class NativeReads implements Function<NativeRequest, NativeTasks> {
  private static final int FIXED_COLUMNS = 6;
  private static final int VECTOR_FIELDS = 5;
  private static final String[] NOWHERE = new String[0];

  /** Null if this Spark does not return batches of such columns. */
  public NativeTasks apply(NativeRequest scan) {
    try {
      return tasks(scan);
    } catch (RuntimeException error) {
      throw error;
    } catch (Exception error) {
      throw new IllegalStateException(error);
    }
  }

  private static NativeTasks tasks(NativeRequest scan) throws Exception {
    StructType stored = only('d', scan);
    StructType constant = only('p', scan);
    SparkSession session = scan.session();
    if (!new ParquetFileFormat().supportBatch(session, joined(stored, constant))) return null;
    String columns = scan.kinds() + scan.physical().json();
    InputPartition[] tasks = Arrays.copyOf(scan.partitions(), scan.partitions().length, InputPartition[].class);
    for (int i = 0; i < tasks.length; i++) {
      byte[] files = scan.files()[i];
      if (files != null) tasks[i] = new NativePartition(tasks[i], files(files, scan.root(), constant), columns);
    }
    Seq<Filter> filters = filters(session, scan.predicates());
    boolean verifies = scan.verifiesChecksums();
    int batchRows = session.sessionState().conf().parquetVectorizedReaderBatchSize();
    return new NativeTasks(tasks, new NativeReaderFactory(
        scan.python(), scan.pythonGivesRows(),
        opener(session, numbered(stored), constant, filters, verifies), opener(session, stored, constant, filters, verifies),
        new FileSchema(stored, batchRows, scan.mostBatchBytes()), places(scan.kinds(), stored.length()), scan.schema(), columns));
  }

  private static StructType only(char kind, NativeRequest scan) {
    var fields = new ArrayList<StructField>();
    for (int i = 0; i < scan.kinds().length(); i++) {
      if (scan.kinds().charAt(i) == kind) fields.add(scan.physical().fields()[i]);
    }
    return new StructType(fields.toArray(new StructField[0]));
  }

  private static StructType joined(StructType one, StructType other) {
    return new StructType(Stream.of(one, other).flatMap(type -> Arrays.stream(type.fields())).toArray(StructField[]::new));
  }

  /** The schema with the row numbers of the file. */
  private static StructType numbered(StructType stored) {
    return stored.add(ParquetFileFormat$.MODULE$.ROW_INDEX_TEMPORARY_COLUMN_NAME(), DataTypes.LongType);
  }

  /** The position of each column in Spark's batches. */
  private static int[] places(String kinds, int storedCount) {
    int[] places = new int[kinds.length()];
    int stored = 0;
    int constant = storedCount;
    for (int i = 0; i < places.length; i++) places[i] = kinds.charAt(i) == 'd' ? stored++ : constant++;
    return places;
  }

  /**
   * Times are read as they are unless a file says otherwise, whatever the session's settings are, as in Python. Page indexes and
   * Bloom filters are used as Spark uses them, by the session's settings of Parquet. Arrays and maps are the exception: some
   * writers begin a page in the middle of a row and write an index all the same, and by that index rows get values of other rows.
   *
   * If checksums are verified, only the bounds in footers exclude rows: page indexes and Bloom filters have no checksum, and
   * Spark compares a dictionary with its checksum only when it reads values, not when it decides whether to read them.
   */
  private static Function1<PartitionedFile, ? extends Iterator<?>> opener(
      SparkSession session, StructType stored, StructType constant, Seq<Filter> filters, boolean verifies) {
    var settings = new HashMap<String, String>(RawFiles.SETTINGS);
    settings.put(FileFormat$.MODULE$.OPTION_RETURNING_BATCH(), "true");
    settings.put("datetimeRebaseMode", "CORRECTED");
    settings.put("int96RebaseMode", "CORRECTED");
    if (verifies) {
      settings.put(ParquetInputFormat.PAGE_VERIFY_CHECKSUM_ENABLED, "true");
      settings.put(ParquetInputFormat.BLOOM_FILTERING_ENABLED, "false");
      settings.put(ParquetInputFormat.DICTIONARY_FILTERING_ENABLED, "false");
    }
    if (verifies || mayRepeat(stored)) settings.put(ParquetInputFormat.COLUMN_INDEX_FILTERING_ENABLED, "false");
    scala.collection.immutable.Map<String, String> options = Map$.MODULE$.from(CollectionConverters.asScala(settings));
    return new ParquetFileFormat().buildReaderWithPartitionValues(
        session, stored, constant, stored, filters, options,
        RawFiles.sent(session.sessionState().newHadoopConfWithOptions(options)));
  }

  /** Whether a row may have several values of a column. */
  private static boolean mayRepeat(DataType type) {
    if (!(type instanceof StructType struct)) return type instanceof ArrayType || type instanceof MapType;
    return Arrays.stream(struct.fields()).anyMatch(field -> mayRepeat(field.dataType()));
  }

  /** Days and times are of java.time: those of java.sql mean something else, or nothing, in a JVM with another time zone. */
  private static Seq<Filter> filters(SparkSession session, List<Predicate> predicates) {
    if (predicates.isEmpty()) return translated(predicates);
    SQLConf conf = session.sessionState().conf().clone();
    conf.setConfString("spark.sql.datetime.java8API.enabled", "true");
    return SQLConf$.MODULE$.withExistingConf(conf, () -> translated(predicates));
  }

  private static Seq<Filter> translated(List<Predicate> predicates) {
    List<Filter> filters = predicates.stream().map(NativeReads::filter).filter(Objects::nonNull).toList();
    return CollectionConverters.asScala(filters).toSeq();
  }

  /** Null if a part of it is not known. Spark's own translation would then replace an OR by one of its sides. */
  private static Filter filter(Predicate predicate) {
    return switch (predicate.name()) {
      case "AND" -> both(predicate, And::new);
      case "OR" -> both(predicate, Or::new);
      case "NOT" -> {
        Filter inner = filter((Predicate) predicate.children()[0]);
        yield inner == null ? null : new Not(inner);
      }
      default -> PredicateUtils$.MODULE$.toV1(predicate).getOrElse(() -> null);
    };
  }

  private static Filter both(Predicate predicate, BinaryOperator<Filter> join) {
    Filter left = filter((Predicate) predicate.children()[0]);
    Filter right = filter((Predicate) predicate.children()[1]);
    return left == null || right == null ? null : join.apply(left, right);
  }

  // ---------------------------------------------------------------- files

  /**
   * stream: path, size, time, deletion vector and part (its first byte, and its length) of files, followed by the values of the
   * partition columns.
   */
  private static NativeFile[] files(byte[] stream, String root, StructType constant) throws Exception {
    var read = ArrowConverters$.MODULE$.fromIPCStream(stream);
    var files = new ArrayList<NativeFile>();
    var rows = read._1();
    try {
      checkTypes(read._2(), constant);
      while (rows.hasNext()) {
        InternalRow row = rows.next();
        DeletionVector deleted = row.isNullAt(3) ? null : DeletionVector.of(row.getStruct(3, VECTOR_FIELDS), root);
        files.add(new NativeFile(file(row, root, constant), deleted));
      }
    } finally {
      rows.close();
    }
    return files.toArray(new NativeFile[0]);
  }

  private static void checkTypes(StructType values, StructType constant) {
    for (int i = 0; i < constant.fields().length; i++) {
      if (values.fields()[FIXED_COLUMNS + i].dataType().equals(constant.fields()[i].dataType())) continue;
      throw new IllegalStateException("partition values " + values.catalogString() + " are not of " + constant.catalogString());
    }
  }

  /** Paths are not encoded: Hadoop takes the parts of a path without encoding. */
  private static PartitionedFile file(InternalRow row, String root, StructType constant) {
    String path = row.getUTF8String(0).toString();
    Path place = new Path("file", null, path.startsWith("/") ? path : root + "/" + path);
    Object[] values = new Object[constant.fields().length];
    for (int i = 0; i < values.length; i++) {
      if (!row.isNullAt(FIXED_COLUMNS + i)) {
        values[i] = InternalRow.copyValue(row.get(FIXED_COLUMNS + i, constant.fields()[i].dataType()));
      }
    }
    long size = row.getLong(1);
    long start = row.getLong(4);
    // The last part has all remaining row groups, wherever the file says that they are.
    long length = start + row.getLong(5) == size ? FileSchema.TO_THE_END - start : row.getLong(5);
    return new PartitionedFile(
        new GenericInternalRow(values), SparkPath$.MODULE$.fromPath(place), start, length, NOWHERE, row.getLong(2), size,
        Map$.MODULE$.empty());
  }
}
