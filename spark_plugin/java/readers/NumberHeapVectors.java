package pydelta.readers;

import org.apache.arrow.vector.ValueVector;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.unsafe.Platform;

/** The classes are named after the values that Spark reads from them: dates are ints, timestamps longs. */
final class NumberHeapVectors {
  private NumberHeapVectors() {}

  static final class Booleans extends HeapVector {
    private final byte[] bits;

    Booleans(DataType type, ValueVector vector, int rows) {
      super(type, vector, rows);
      bits = bytes(vector.getDataBuffer(), 0, (rows + 7) / 8);
    }

    public boolean getBoolean(int row) {
      return (bits[row >> 3] >> (row & 7) & 1) == 1;
    }
  }

  static final class Bytes extends HeapVector {
    private final byte[] values;

    Bytes(DataType type, ValueVector vector, int rows) {
      super(type, vector, rows);
      values = filled(new byte[rows], Platform.BYTE_ARRAY_OFFSET, vector, 1L * rows);
    }

    public byte getByte(int row) {
      return values[row];
    }
  }

  static final class Shorts extends HeapVector {
    private final short[] values;

    Shorts(DataType type, ValueVector vector, int rows) {
      super(type, vector, rows);
      values = filled(new short[rows], Platform.SHORT_ARRAY_OFFSET, vector, 2L * rows);
    }

    public short getShort(int row) {
      return values[row];
    }
  }

  static final class Ints extends HeapVector {
    private final int[] values;

    Ints(DataType type, ValueVector vector, int rows) {
      super(type, vector, rows);
      values = filled(new int[rows], Platform.INT_ARRAY_OFFSET, vector, 4L * rows);
    }

    public int getInt(int row) {
      return values[row];
    }
  }

  static final class Longs extends HeapVector {
    private final long[] values;

    Longs(DataType type, ValueVector vector, int rows) {
      super(type, vector, rows);
      values = filled(new long[rows], Platform.LONG_ARRAY_OFFSET, vector, 8L * rows);
    }

    public long getLong(int row) {
      return values[row];
    }
  }

  static final class Floats extends HeapVector {
    private final float[] values;

    Floats(DataType type, ValueVector vector, int rows) {
      super(type, vector, rows);
      values = filled(new float[rows], Platform.FLOAT_ARRAY_OFFSET, vector, 4L * rows);
    }

    public float getFloat(int row) {
      return values[row];
    }
  }

  static final class Doubles extends HeapVector {
    private final double[] values;

    Doubles(DataType type, ValueVector vector, int rows) {
      super(type, vector, rows);
      values = filled(new double[rows], Platform.DOUBLE_ARRAY_OFFSET, vector, 8L * rows);
    }

    public double getDouble(int row) {
      return values[row];
    }
  }
}
