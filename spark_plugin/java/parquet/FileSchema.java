package pydelta.parquet;

import java.io.IOException;
import java.io.Serializable;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import org.apache.parquet.format.converter.ParquetMetadataConverter;
import org.apache.parquet.hadoop.metadata.BlockMetaData;
import org.apache.parquet.hadoop.metadata.ColumnChunkMetaData;
import org.apache.parquet.hadoop.metadata.ParquetMetadata;
import org.apache.parquet.hadoop.util.HadoopInputFile;
import org.apache.parquet.schema.GroupType;
import org.apache.parquet.schema.LogicalTypeAnnotation;
import org.apache.parquet.schema.LogicalTypeAnnotation.DecimalLogicalTypeAnnotation;
import org.apache.parquet.schema.LogicalTypeAnnotation.IntLogicalTypeAnnotation;
import org.apache.parquet.schema.LogicalTypeAnnotation.TimestampLogicalTypeAnnotation;
import org.apache.parquet.schema.PrimitiveType;
import org.apache.parquet.schema.PrimitiveType.PrimitiveTypeName;
import org.apache.parquet.schema.Type;
import org.apache.spark.sql.execution.datasources.PartitionedFile;
import org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat$;
import org.apache.spark.sql.execution.datasources.parquet.ParquetFooterReader;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.Decimal$;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/**
 * The columns that are read from data files, and whether a file stores them as their types are stored.
 *
 * Spark's reader does not check that. It returns wrapped numbers for unsigned ones, and for integers that are too large for a
 * SMALLINT column. A column fits only if both readers are known to read it alike. Columns that a file lacks are null.
 */
class FileSchema implements Serializable {
  private static final long serialVersionUID = 1L;

  /**
   * The minimum size of a Parquet file. Something that is not a regular file has less, and is not opened: a pipe would wait for
   * its writer.
   */
  private static final int LEAST_BYTES = 12;

  private static final LogicalTypeAnnotation STRING = LogicalTypeAnnotation.stringType();
  private static final LogicalTypeAnnotation DATE = LogicalTypeAnnotation.dateType();

  /** The length of the part of a file from its first byte to the file's end. */
  static final long TO_THE_END = Long.MAX_VALUE;

  private static final List<String> OF_LEGACY_CALENDAR =
      List.of("org.apache.spark.legacyDateTime", "org.apache.spark.legacyINT96");
  private static final String WRITTEN_BY = "org.apache.spark.version";
  private static final String FIRST_OF_ONE_CALENDAR = "3.1.0";

  private final StructType columns;
  private final int batchRows;
  private final long mostBatchBytes;
  private final boolean hasTimes;
  private final boolean maybeLarge;

  /**
   * batchRows: the most rows that Spark's reader puts into a batch. mostBatchBytes: for the values of one batch, from
   * read_limits.py; Python reads a file with larger batches.
   */
  FileSchema(StructType columns, int batchRows, long mostBatchBytes) {
    this.columns = columns;
    this.batchRows = batchRows;
    this.mostBatchBytes = mostBatchBytes;
    String types = columns.catalogString();
    this.hasTimes = types.contains("date") || types.contains("timestamp");
    this.maybeLarge = types.contains("string") || types.contains("binary") || types.contains("array<") || types.contains("map<");
  }

  int count() {
    return columns.fields().length;
  }

  /**
   * Raises if a column is stored differently, if the footer cannot be read, or if the file does not have the length in the log:
   * Spark would leave out the row groups beyond that length.
   */
  void check(PartitionedFile listed) throws IOException {
    HadoopInputFile file = HadoopInputFile.fromPath(listed.toPath(), RawFiles.settings());
    if (listed.fileSize() < LEAST_BYTES) throw new IOException("it is too short");
    if (file.getLength() != listed.fileSize()) {
      throw new IOException("it has " + file.getLength() + " bytes, and the log says " + listed.fileSize());
    }
    boolean isWhole = listed.start() == 0 && listed.length() == TO_THE_END;
    ParquetMetadata footer = ParquetFooterReader.readFooter(
        file, isWhole && !maybeLarge ? ParquetMetadataConverter.SKIP_ROW_GROUPS : ParquetMetadataConverter.NO_FILTER);
    if (maybeLarge) checkSizes(footer);
    if (!isWhole) checkPart(file, footer, listed.start(), listed.length());
    if (hasTimes) checkCalendar(footer.getFileMetaData().getKeyValueMetaData());
    GroupType stored = footer.getFileMetaData().getSchema();
    Map<String, List<Type>> storedFields = byName(stored);
    if (find(storedFields, ParquetFileFormat$.MODULE$.ROW_INDEX_TEMPORARY_COLUMN_NAME()) != null) {
      throw new IOException("it has a column of the name that Spark gives to the numbers of rows");
    }
    for (StructField field : columns.fields()) {
      Type storedField = find(storedFields, field.name());
      if (storedField == null || fits(storedField, field.dataType())) continue;
      throw new IOException("its column " + storedField + " is not stored as " + field.dataType().catalogString() + " is");
    }
  }

  /** Raises if a batch of the columns that are read would be large, judged by the mean of a row group. */
  private void checkSizes(ParquetMetadata footer) throws IOException {
    Set<String> names = Set.copyOf(List.of(columns.fieldNames()));
    for (BlockMetaData group : footer.getBlocks()) {
      double bytes = 0;
      for (ColumnChunkMetaData chunk : group.getColumns()) {
        if (names.contains(chunk.getPath().toArray()[0])) bytes += chunk.getTotalUncompressedSize();
      }
      double rows = Math.max(1, group.getRowCount());
      double batchBytes = bytes / rows * Math.min(rows, batchRows);
      if (batchBytes > mostBatchBytes) throw new IOException("a batch of its values would be large");
    }
  }

  /** The number of rows of the whole file. */
  static long rowCount(PartitionedFile listed) throws IOException {
    HadoopInputFile file = HadoopInputFile.fromPath(listed.toPath(), RawFiles.settings());
    List<BlockMetaData> groups = ParquetFooterReader.readFooter(file, ParquetMetadataConverter.NO_FILTER).getBlocks();
    return groups.stream().mapToLong(BlockMetaData::getRowCount).sum();
  }

  /**
   * Raises if the row groups that Spark assigns to a part of the file are not those whose middles are in the part: Python may
   * read the other parts, and uses that rule (row_groups.py).
   */
  private static void checkPart(HadoopInputFile file, ParquetMetadata footer, long start, long length) throws IOException {
    long stop = length == TO_THE_END - start ? TO_THE_END : start + length;
    List<BlockMetaData> taken = ParquetFooterReader.readFooter(file, ParquetMetadataConverter.range(start, stop)).getBlocks();
    int next = 0;
    for (BlockMetaData group : footer.getBlocks()) {
      long middle = group.getStartingPos() + group.getCompressedSize() / 2;
      boolean isOurs = start <= middle && middle < stop;
      boolean isTaken = next < taken.size() && taken.get(next).getStartingPos() == group.getStartingPos();
      if (isOurs != isTaken) throw new IOException("where its row groups lie is not clear");
      if (isTaken) next++;
    }
    if (next != taken.size()) throw new IOException("where its row groups lie is not clear");
  }

  /**
   * Raises for a file whose days may be of the calendar before 1582: Spark uses its statistics, which do not suffice, and takes
   * another time zone than Python.
   */
  private static void checkCalendar(Map<String, String> metadata) throws IOException {
    for (String key : OF_LEGACY_CALENDAR) {
      if (metadata.containsKey(key)) throw new IOException("its days are of the legacy calendar");
    }
    String version = metadata.get(WRITTEN_BY);
    if (version != null && version.compareTo(FIRST_OF_ONE_CALENDAR) < 0) {
      throw new IOException("Spark " + version + " wrote it, maybe with days of the legacy calendar");
    }
  }

  /** The fields by their names without case. A name may be that of several fields. */
  private static Map<String, List<Type>> byName(GroupType group) {
    return group.getFields().stream().collect(Collectors.groupingBy(field -> folded(field.getName())));
  }

  /** Equal for names that String.equalsIgnoreCase treats as equal. */
  private static String folded(String name) {
    char[] letters = name.toCharArray();
    for (int i = 0; i < letters.length; i++) letters[i] = Character.toLowerCase(Character.toUpperCase(letters[i]));
    return new String(letters);
  }

  /** Null if there is none. Raises if several fields match: Spark ignores the case of names. */
  private static Type find(Map<String, List<Type>> fields, String name) throws IOException {
    Type first = null;
    for (Type field : fields.getOrDefault(folded(name), List.of())) {
      if (first != null || !field.getName().equals(name)) {
        throw new IOException("it has a column " + field.getName() + " beside or for " + name);
      }
      first = field;
    }
    return first;
  }

  private static boolean fits(Type stored, DataType type) throws IOException {
    if (stored.isRepetition(Type.Repetition.REPEATED)) return false;
    if (type instanceof StructType struct) return isStruct(stored, struct);
    if (type instanceof ArrayType array) return isArray(stored, array);
    if (type instanceof MapType map) return isMap(stored, map);
    return stored.isPrimitive() && isValue(stored.asPrimitiveType(), stored.getLogicalTypeAnnotation(), type);
  }

  private static boolean isValue(PrimitiveType stored, LogicalTypeAnnotation says, DataType type) {
    PrimitiveTypeName kind = stored.getPrimitiveTypeName();
    if (type instanceof DecimalType decimal) return isDecimal(says, decimal) && holds(stored, decimal.precision());
    if (type.equals(DataTypes.BooleanType)) return kind == PrimitiveTypeName.BOOLEAN;
    if (type.equals(DataTypes.ByteType)) return kind == PrimitiveTypeName.INT32 && isSigned(says, 8);
    if (type.equals(DataTypes.ShortType)) return kind == PrimitiveTypeName.INT32 && isSigned(says, 16);
    if (type.equals(DataTypes.IntegerType)) return kind == PrimitiveTypeName.INT32 && (says == null || isSigned(says, 32));
    if (type.equals(DataTypes.LongType)) return kind == PrimitiveTypeName.INT64 && (says == null || isSigned(says, 64));
    if (type.equals(DataTypes.FloatType)) return kind == PrimitiveTypeName.FLOAT && says == null;
    if (type.equals(DataTypes.DoubleType)) return kind == PrimitiveTypeName.DOUBLE && says == null;
    if (type.equals(DataTypes.StringType)) return kind == PrimitiveTypeName.BINARY && STRING.equals(says);
    if (type.equals(DataTypes.BinaryType)) return kind == PrimitiveTypeName.BINARY && says == null;
    if (type.equals(DataTypes.DateType)) return kind == PrimitiveTypeName.INT32 && DATE.equals(says);
    if (type.equals(DataTypes.TimestampNTZType)) return kind == PrimitiveTypeName.INT64 && isTime(says, false);
    if (type.equals(DataTypes.TimestampType)) {
      return kind == PrimitiveTypeName.INT96 || (kind == PrimitiveTypeName.INT64 && isTime(says, true));
    }
    return false;
  }

  private static boolean isSigned(LogicalTypeAnnotation says, int bits) {
    if (!(says instanceof IntLogicalTypeAnnotation integer)) return false;
    return integer.isSigned() && integer.getBitWidth() == bits;
  }

  private static boolean isDecimal(LogicalTypeAnnotation says, DecimalType type) {
    if (!(says instanceof DecimalLogicalTypeAnnotation decimal)) return false;
    return decimal.getPrecision() == type.precision() && decimal.getScale() == type.scale();
  }

  /**
   * Whether Spark reads decimals of that precision correctly: from arrays that are longer than their type needs it takes the
   * wrong bytes.
   */
  private static boolean holds(PrimitiveType stored, int precision) {
    return switch (stored.getPrimitiveTypeName()) {
      case INT32 -> precision <= Decimal$.MODULE$.MAX_INT_DIGITS();
      case INT64 -> precision <= Decimal$.MODULE$.MAX_LONG_DIGITS();
      case FIXED_LEN_BYTE_ARRAY -> stored.getTypeLength() <= (precision <= Decimal$.MODULE$.MAX_LONG_DIGITS() ? 8 : 16);
      default -> false;
    };
  }

  /** Only microseconds count: with milliseconds Spark leaves out row groups that have matching rows. */
  private static boolean isTime(LogicalTypeAnnotation says, boolean inUtc) {
    if (!(says instanceof TimestampLogicalTypeAnnotation time)) return false;
    return time.isAdjustedToUTC() == inUtc && time.getUnit() == LogicalTypeAnnotation.TimeUnit.MICROS;
  }

  // ---------------------------------------------------------------- nested values

  /** Python reads a file in which a struct lacks a field: Spark's settings decide whether the struct is null then. */
  private static boolean isStruct(Type stored, StructType type) throws IOException {
    if (stored.isPrimitive() || stored.getLogicalTypeAnnotation() != null) return false;
    Map<String, List<Type>> storedFields = byName(stored.asGroupType());
    for (StructField field : type.fields()) {
      Type storedField = find(storedFields, field.name());
      if (storedField == null || !fits(storedField, field.dataType())) return false;
    }
    return true;
  }

  private static boolean isArray(Type stored, ArrayType type) throws IOException {
    GroupType repeated = repeated(stored, LogicalTypeAnnotation.listType(), 1);
    return repeated != null && repeated.getName().equals("list") && repeated.getFieldName(0).equals("element")
        && fits(repeated.getType(0), type.elementType());
  }

  private static boolean isMap(Type stored, MapType type) throws IOException {
    GroupType repeated = repeated(stored, LogicalTypeAnnotation.mapType(), 2);
    return repeated != null && repeated.getName().equals("key_value")
        && repeated.getFieldName(0).equals("key") && repeated.getFieldName(1).equals("value")
        && fits(repeated.getType(0), type.keyType()) && fits(repeated.getType(1), type.valueType());
  }

  /** The repeated group with this number of fields that stores an array or a map; null if it is stored differently. */
  private static GroupType repeated(Type stored, LogicalTypeAnnotation says, int fields) {
    if (stored.isPrimitive() || !says.equals(stored.getLogicalTypeAnnotation())) return null;
    if (stored.asGroupType().getFieldCount() != 1) return null;
    Type inner = stored.asGroupType().getType(0);
    if (inner.isPrimitive() || !inner.isRepetition(Type.Repetition.REPEATED)) return null;
    return inner.asGroupType().getFieldCount() == fields ? inner.asGroupType() : null;
  }
}
