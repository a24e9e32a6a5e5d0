package pydelta.parquet;

import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import org.apache.hadoop.fs.Path;
import org.apache.parquet.hadoop.ParquetInputFormat;
import org.apache.spark.paths.SparkPath$;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
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
import org.apache.spark.sql.util.CloseableIterator;
import scala.Function1;
import scala.Tuple2;
import scala.collection.immutable.Seq;

/**
 * Spark's Parquet reader, on the driver: a Function of what NativeScan.java says of a planned scan.
 */
public class NativeReads implements Function {
  private static final int FIXED_COLUMNS = 6;
  private static final int VECTOR_FIELDS = 5;
  private static final String[] NOWHERE = new String[0];

  /**
   * scan: `schema`, of the scan, and `physical`, the same by the names in files; `kinds`, a letter for each column, d for one of
   * data files and p for one of partitions; `root` of the table; `predicates`, a List of Spark's, by the names in files;
   * `verifyChecksums`, whether pages are compared with their checksums; `session`; `partitions`, InputPartition[] for Python; `files`, for each of them null or an Arrow stream as native_files.py
   * makes it; `factory`, Spark's or ours, for Python; `rows`, whether that gives rows.
   * Object[] comes out: the partitions, and the factory that reads them. Null where this Spark gives no batches of such columns.
   */
  public Object apply(Object scan) {
    Map said = (Map) scan;
    try {
      return prepared(said);
    } catch (RuntimeException error) {
      throw error;
    } catch (Exception error) {
      throw new IllegalStateException(error);
    }
  }

  private static Object prepared(Map scan) throws Exception {
    StructType physical = (StructType) scan.get("physical");
    String kinds = (String) scan.get("kinds");
    StructType stored = only('d', kinds, physical);
    StructType constant = only('p', kinds, physical);
    SparkSession session = (SparkSession) scan.get("session");
    if (!new ParquetFileFormat().supportBatch(session, joined(stored, constant))) return null;
    String columns = kinds + physical.json();
    InputPartition[] partitions = (InputPartition[]) scan.get("partitions");
    byte[][] files = (byte[][]) scan.get("files");
    InputPartition[] tasks = new InputPartition[partitions.length];
    for (int i = 0; i < tasks.length; i++) {
      tasks[i] = partitions[i];
      if (files[i] == null) continue;
      List listed = new ArrayList();
      List deleted = new ArrayList();
      list(files[i], (String) scan.get("root"), constant, listed, deleted);
      tasks[i] = new NativePartition(
          partitions[i], (PartitionedFile[]) listed.toArray(new PartitionedFile[0]),
          (DeletionVector[]) deleted.toArray(new DeletionVector[0]), columns);
    }
    Seq filters = filters(session, (List) scan.get("predicates"));
    boolean verifies = ((Boolean) scan.get("verifyChecksums")).booleanValue();
    int batchRows = session.sessionState().conf().parquetVectorizedReaderBatchSize();
    NativeReaderFactory factory = new NativeReaderFactory(
        (PartitionReaderFactory) scan.get("factory"), ((Boolean) scan.get("rows")).booleanValue(),
        opener(session, numbered(stored), constant, filters, verifies), opener(session, stored, constant, filters, verifies),
        new FileSchema(stored, batchRows, ((Long) scan.get("mostBatchBytes")).longValue()),
        places(kinds, stored.fields().length), (StructType) scan.get("schema"), columns);
    return new Object[] {tasks, factory};
  }

  private static StructType only(char kind, String kinds, StructType physical) {
    List fields = new ArrayList();
    for (int i = 0; i < kinds.length(); i++) {
      if (kinds.charAt(i) == kind) fields.add(physical.fields()[i]);
    }
    return new StructType((StructField[]) fields.toArray(new StructField[0]));
  }

  private static StructType joined(StructType one, StructType other) {
    List fields = new ArrayList();
    for (int i = 0; i < one.fields().length; i++) fields.add(one.fields()[i]);
    for (int i = 0; i < other.fields().length; i++) fields.add(other.fields()[i]);
    return new StructType((StructField[]) fields.toArray(new StructField[0]));
  }

  /** With the numbers of rows in the file. */
  private static StructType numbered(StructType stored) {
    return stored.add(ParquetFileFormat$.MODULE$.ROW_INDEX_TEMPORARY_COLUMN_NAME(), DataTypes.LongType);
  }

  /** Where each column stands in Spark's batches. */
  private static int[] places(String kinds, int storedCount) {
    int[] places = new int[kinds.length()];
    int stored = 0;
    int constant = storedCount;
    for (int i = 0; i < places.length; i++) places[i] = kinds.charAt(i) == 'd' ? stored++ : constant++;
    return places;
  }

  /**
   * Times are taken as they are unless a file says otherwise, whatever the session's settings are, as in Python. Indexes of
   * pages and Bloom filters are asked as Spark asks them, by the session's settings of Parquet; but for arrays and maps, as some
   * writers begin a page in the midst of a row and write an index all the same, by which rows get values of others.
   *
   * Where checksums are verified, rows are passed over by the bounds in footers alone: indexes of pages and Bloom filters have no
   * checksum, and Spark compares a dictionary with its checksum only when it reads values, not when it looks whether to read them.
   */
  private static Function1 opener(SparkSession session, StructType stored, StructType constant, Seq filters, boolean verifies) {
    scala.collection.immutable.Map options = (scala.collection.immutable.Map) scala.collection.immutable.Map$.MODULE$.empty();
    options = (scala.collection.immutable.Map) options.updated(FileFormat$.MODULE$.OPTION_RETURNING_BATCH(), "true");
    options = (scala.collection.immutable.Map) options.updated("datetimeRebaseMode", "CORRECTED");
    options = (scala.collection.immutable.Map) options.updated("int96RebaseMode", "CORRECTED");
    if (verifies) {
      options = (scala.collection.immutable.Map) options.updated(ParquetInputFormat.PAGE_VERIFY_CHECKSUM_ENABLED, "true");
      options = (scala.collection.immutable.Map) options.updated(ParquetInputFormat.BLOOM_FILTERING_ENABLED, "false");
      options = (scala.collection.immutable.Map) options.updated(ParquetInputFormat.DICTIONARY_FILTERING_ENABLED, "false");
    }
    if (verifies || mayRepeat(stored)) {
      options = (scala.collection.immutable.Map) options.updated(ParquetInputFormat.COLUMN_INDEX_FILTERING_ENABLED, "false");
    }
    for (Iterator each = RawFiles.told().entrySet().iterator(); each.hasNext();) {
      Map.Entry setting = (Map.Entry) each.next();
      options = (scala.collection.immutable.Map) options.updated(setting.getKey(), setting.getValue());
    }
    return new ParquetFileFormat().buildReaderWithPartitionValues(
        session, stored, constant, stored, filters, options,
        RawFiles.sent(session.sessionState().newHadoopConfWithOptions(options)));
  }

  /** Whether a row may have several values of a column. */
  private static boolean mayRepeat(DataType type) {
    if (!(type instanceof StructType)) return type instanceof ArrayType || type instanceof MapType;
    StructField[] fields = ((StructType) type).fields();
    for (int i = 0; i < fields.length; i++) {
      if (mayRepeat(fields[i].dataType())) return true;
    }
    return false;
  }

  /** With days and times of java.time: those of java.sql are other ones in another JVM's time zone, or in none. */
  private static Seq filters(SparkSession session, List predicates) {
    if (predicates.isEmpty()) return translated(predicates);
    SQLConf conf = session.sessionState().conf().clone();
    conf.setConfString("spark.sql.datetime.java8API.enabled", "true");
    return SQLConf$.MODULE$.withExistingConf(conf, () -> translated(predicates));
  }

  static Seq translated(List predicates) {
    Seq filters = (Seq) scala.collection.immutable.Nil$.MODULE$;
    for (int i = 0; i < predicates.size(); i++) {
      Filter filter = filter((Predicate) predicates.get(i));
      if (filter != null) filters = (Seq) filters.appended(filter);
    }
    return filters;
  }

  /** Null where a part of it is not known. Spark's own translation would take one side of an OR for the whole then. */
  private static Filter filter(Predicate predicate) {
    if (predicate.name().equals("AND")) {
      Filter[] both = both(predicate);
      return both == null ? null : new And(both[0], both[1]);
    }
    if (predicate.name().equals("OR")) {
      Filter[] both = both(predicate);
      return both == null ? null : new Or(both[0], both[1]);
    }
    if (predicate.name().equals("NOT")) {
      Filter inner = filter((Predicate) predicate.children()[0]);
      return inner == null ? null : new Not(inner);
    }
    scala.Option plain = PredicateUtils$.MODULE$.toV1(predicate);
    return plain.isDefined() ? (Filter) plain.get() : null;
  }

  private static Filter[] both(Predicate predicate) {
    Filter left = filter((Predicate) predicate.children()[0]);
    Filter right = filter((Predicate) predicate.children()[1]);
    return left == null || right == null ? null : new Filter[] {left, right};
  }

  // ---------------------------------------------------------------- files

  /**
   * stream: path, size, time, deletion vector and part (its first byte, and how many) of files, and behind those the values of the
   * partition columns. Fills listed, a List of PartitionedFile, and deleted, of the same length, with nulls.
   */
  private static void list(byte[] stream, String root, StructType constant, List listed, List deleted) throws Exception {
    Tuple2 read = ArrowConverters$.MODULE$.fromIPCStream(stream);
    CloseableIterator rows = (CloseableIterator) read._1();
    try {
      checkTypes((StructType) read._2(), constant);
      while (rows.hasNext()) {
        InternalRow told = (InternalRow) rows.next();
        listed.add(file(told, root, constant));
        deleted.add(told.isNullAt(3) ? null : DeletionVector.of(told.getStruct(3, VECTOR_FIELDS), root));
      }
    } finally {
      rows.close();
    }
  }

  private static void checkTypes(StructType told, StructType constant) {
    for (int i = 0; i < constant.fields().length; i++) {
      if (told.fields()[FIXED_COLUMNS + i].dataType().equals(constant.fields()[i].dataType())) continue;
      throw new IllegalStateException("partition values " + told.catalogString() + " are not of " + constant.catalogString());
    }
  }

  /** Paths are not encoded: Hadoop takes them so in parts. */
  private static PartitionedFile file(InternalRow told, String root, StructType constant) {
    String path = told.getUTF8String(0).toString();
    Path place = new Path("file", (String) null, path.startsWith("/") ? path : root + "/" + path);
    Object[] values = new Object[constant.fields().length];
    for (int i = 0; i < values.length; i++) {
      if (!told.isNullAt(FIXED_COLUMNS + i)) {
        values[i] = InternalRow.copyValue(told.get(FIXED_COLUMNS + i, constant.fields()[i].dataType()));
      }
    }
    long size = told.getLong(1);
    long start = told.getLong(4);
    // The last part has all row groups that are left, wherever the file says that they lie.
    long length = start + told.getLong(5) == size ? FileSchema.TO_THE_END - start : told.getLong(5);
    return new PartitionedFile(
        new GenericInternalRow(values), SparkPath$.MODULE$.fromPath(place), start, length, NOWHERE, told.getLong(2), size,
        (scala.collection.immutable.Map) scala.collection.immutable.Map$.MODULE$.empty());
  }
}
