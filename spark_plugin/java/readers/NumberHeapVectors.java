package pydelta.readers;

import org.apache.arrow.vector.ValueVector;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.unsafe.Platform;

/** The classes are named by the values that Spark asks them for: dates are ints, timestamps longs. */
final class NumberHeapVectors {
  private NumberHeapVectors() {}

  static final class BooleanHeapVector extends HeapVector {
    private final byte[] bits;

    BooleanHeapVector(DataType type, ValueVector vector, int rows) {
      super(type, vector, rows);
      this.bits = bytes(vector.getDataBuffer(), 0, (rows + 7) / 8);
    }

    public boolean getBoolean(int row) {
      return (bits[row >> 3] >> (row & 7) & 1) == 1;
    }
  }

  static final class ByteHeapVector extends HeapVector {
    private final byte[] values;

    ByteHeapVector(DataType type, ValueVector vector, int rows) {
      super(type, vector, rows);
      this.values = new byte[rows];
      copy(vector.getDataBuffer(), 0, values, Platform.BYTE_ARRAY_OFFSET, 1L * rows);
    }

    public byte getByte(int row) {
      return values[row];
    }
  }

  static final class ShortHeapVector extends HeapVector {
    private final short[] values;

    ShortHeapVector(DataType type, ValueVector vector, int rows) {
      super(type, vector, rows);
      this.values = new short[rows];
      copy(vector.getDataBuffer(), 0, values, Platform.SHORT_ARRAY_OFFSET, 2L * rows);
    }

    public short getShort(int row) {
      return values[row];
    }
  }

  static final class IntHeapVector extends HeapVector {
    private final int[] values;

    IntHeapVector(DataType type, ValueVector vector, int rows) {
      super(type, vector, rows);
      this.values = new int[rows];
      copy(vector.getDataBuffer(), 0, values, Platform.INT_ARRAY_OFFSET, 4L * rows);
    }

    public int getInt(int row) {
      return values[row];
    }
  }

  static final class LongHeapVector extends HeapVector {
    private final long[] values;

    LongHeapVector(DataType type, ValueVector vector, int rows) {
      super(type, vector, rows);
      this.values = new long[rows];
      copy(vector.getDataBuffer(), 0, values, Platform.LONG_ARRAY_OFFSET, 8L * rows);
    }

    public long getLong(int row) {
      return values[row];
    }
  }

  static final class FloatHeapVector extends HeapVector {
    private final float[] values;

    FloatHeapVector(DataType type, ValueVector vector, int rows) {
      super(type, vector, rows);
      this.values = new float[rows];
      copy(vector.getDataBuffer(), 0, values, Platform.FLOAT_ARRAY_OFFSET, 4L * rows);
    }

    public float getFloat(int row) {
      return values[row];
    }
  }

  static final class DoubleHeapVector extends HeapVector {
    private final double[] values;

    DoubleHeapVector(DataType type, ValueVector vector, int rows) {
      super(type, vector, rows);
      this.values = new double[rows];
      copy(vector.getDataBuffer(), 0, values, Platform.DOUBLE_ARRAY_OFFSET, 8L * rows);
    }

    public double getDouble(int row) {
      return values[row];
    }
  }
}
