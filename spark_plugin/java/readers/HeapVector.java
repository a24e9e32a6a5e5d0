package pydelta.readers;

import java.util.Map;
import org.apache.arrow.memory.ArrowBuf;
import org.apache.arrow.vector.BigIntVector;
import org.apache.arrow.vector.BitVector;
import org.apache.arrow.vector.DateDayVector;
import org.apache.arrow.vector.DecimalVector;
import org.apache.arrow.vector.FieldVector;
import org.apache.arrow.vector.Float4Vector;
import org.apache.arrow.vector.Float8Vector;
import org.apache.arrow.vector.IntVector;
import org.apache.arrow.vector.SmallIntVector;
import org.apache.arrow.vector.TimeStampMicroTZVector;
import org.apache.arrow.vector.TimeStampMicroVector;
import org.apache.arrow.vector.TinyIntVector;
import org.apache.arrow.vector.ValueVector;
import org.apache.arrow.vector.VarBinaryVector;
import org.apache.arrow.vector.VarCharVector;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.DecimalType;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarArray;
import org.apache.spark.sql.vectorized.ColumnarMap;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.unsafe.types.UTF8String;

/**
 * One column of one batch, copied out of Arrow's memory into Java arrays. Immutable.
 *
 * It is not an ArrowColumnVector, because operators of Spark use the Arrow memory of such vectors directly. One of them
 * (ArrowEvalPythonExec) keeps batches until after the next call, when that memory holds other rows.
 */
abstract class HeapVector extends ColumnVector {
  /** Types are compared with all that they contain: a STRING with a collation is another type. */
  private static final Map<DataType, Kind> KINDS = Map.ofEntries(
      Map.entry(DataTypes.BooleanType, new Kind(BitVector.class, NumberHeapVectors::booleans)),
      Map.entry(DataTypes.ByteType, new Kind(TinyIntVector.class, NumberHeapVectors::bytes)),
      Map.entry(DataTypes.ShortType, new Kind(SmallIntVector.class, NumberHeapVectors::shorts)),
      Map.entry(DataTypes.IntegerType, new Kind(IntVector.class, NumberHeapVectors::ints)),
      Map.entry(DataTypes.LongType, new Kind(BigIntVector.class, NumberHeapVectors::longs)),
      Map.entry(DataTypes.FloatType, new Kind(Float4Vector.class, NumberHeapVectors::floats)),
      Map.entry(DataTypes.DoubleType, new Kind(Float8Vector.class, NumberHeapVectors::doubles)),
      Map.entry(DataTypes.DateType, new Kind(DateDayVector.class, NumberHeapVectors::ints)),
      Map.entry(DataTypes.TimestampType, new Kind(TimeStampMicroTZVector.class, NumberHeapVectors::longs)),
      Map.entry(DataTypes.TimestampNTZType, new Kind(TimeStampMicroVector.class, NumberHeapVectors::longs)),
      Map.entry(DataTypes.StringType, new Kind(VarCharVector.class, BytesHeapVector::new)),
      Map.entry(DataTypes.BinaryType, new Kind(VarBinaryVector.class, BytesHeapVector::new)));
  private static final Kind DECIMAL = new Kind(DecimalVector.class, DecimalHeapVector::new);

  /** One bit for each row, 1 for a value; null if there are no nulls. */
  private final byte[] validity;
  private final int nulls;

  /** The class of Arrow vector that has the values of a type, and the function that copies it. */
  private record Kind(Class<? extends ValueVector> vector, Copier copier) {
    static Kind of(DataType type) {
      return type instanceof DecimalType ? DECIMAL : KINDS.get(type);
    }
  }

  private interface Copier {
    HeapVector copy(DataType type, ValueVector vector, int rows);
  }

  HeapVector(DataType type, ValueVector vector, int rows) {
    super(type);
    this.nulls = vector.getNullCount();
    this.validity = nulls == 0 ? null : bytes(((FieldVector) vector).getValidityBuffer(), 0, (rows + 7) / 8);
  }

  static boolean covers(DataType type) {
    return Kind.of(type) != null;
  }

  /** rows: the row count, at least one. type: one of KINDS. */
  static HeapVector copyOf(ValueVector vector, DataType type, int rows) {
    Kind kind = Kind.of(type);
    if (kind == null || !kind.vector.isInstance(vector) || vector.getValueCount() != rows) {
      throw new IllegalStateException("a column of " + type.catalogString() + " with " + rows + " rows came as "
          + vector.getClass().getSimpleName() + " with " + vector.getValueCount());
    }
    return kind.copier.copy(type, vector, rows);
  }

  /** A part of a buffer. */
  static byte[] bytes(ArrowBuf buffer, long start, int length) {
    byte[] copy = new byte[length];
    copy(buffer, start, copy, Platform.BYTE_ARRAY_OFFSET, length);
    return copy;
  }

  /** The array, after the first bytes of the vector's values were copied into it. */
  static <A> A filled(A array, int arrayOffset, ValueVector vector, long length) {
    copy(vector.getDataBuffer(), 0, array, arrayOffset, length);
    return array;
  }

  /** Arrow's own bounds checks are switched off in Spark. */
  static void copy(ArrowBuf buffer, long start, Object array, long arrayOffset, long length) {
    if (length == 0) return;
    if (start < 0 || length < 0 || start + length > buffer.capacity()) {
      throw new IllegalStateException(
          "bytes " + start + " to " + (start + length) + " of an Arrow buffer of " + buffer.capacity());
    }
    Platform.copyMemory(null, buffer.memoryAddress() + start, array, arrayOffset, length);
  }

  public boolean hasNull() {
    return nulls > 0;
  }

  public int numNulls() {
    return nulls;
  }

  public boolean isNullAt(int row) {
    return validity != null && (validity[row >> 3] >> (row & 7) & 1) == 0;
  }

  /** There is nothing to release. */
  public void close() {
  }

  public boolean getBoolean(int row) {
    throw notOfThisType();
  }

  public byte getByte(int row) {
    throw notOfThisType();
  }

  public short getShort(int row) {
    throw notOfThisType();
  }

  public int getInt(int row) {
    throw notOfThisType();
  }

  public long getLong(int row) {
    throw notOfThisType();
  }

  public float getFloat(int row) {
    throw notOfThisType();
  }

  public double getDouble(int row) {
    throw notOfThisType();
  }

  public Decimal getDecimal(int row, int precision, int scale) {
    throw notOfThisType();
  }

  public UTF8String getUTF8String(int row) {
    throw notOfThisType();
  }

  public byte[] getBinary(int row) {
    throw notOfThisType();
  }

  public ColumnarArray getArray(int row) {
    throw notOfThisType();
  }

  public ColumnarMap getMap(int row) {
    throw notOfThisType();
  }

  public ColumnVector getChild(int ordinal) {
    throw notOfThisType();
  }

  private UnsupportedOperationException notOfThisType() {
    return new UnsupportedOperationException("not a value of a column of " + dataType().catalogString());
  }
}
