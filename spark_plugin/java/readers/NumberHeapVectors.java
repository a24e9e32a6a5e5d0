package pydelta.readers;

import org.apache.arrow.vector.ValueVector;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.unsafe.Platform;

/** The classes are named after the values that Spark reads from them: dates are ints, timestamps longs. */
final class NumberHeapVectors {
  private NumberHeapVectors() {}

  static HeapVector booleans(DataType type, ValueVector vector, int rows) {
    byte[] bits = HeapVector.bytes(vector.getDataBuffer(), 0, (rows + 7) / 8);
    return new HeapVector(type, vector, rows) {
      public boolean getBoolean(int row) {
        return (bits[row >> 3] >> (row & 7) & 1) == 1;
      }
    };
  }

  static HeapVector bytes(DataType type, ValueVector vector, int rows) {
    byte[] values = HeapVector.filled(new byte[rows], Platform.BYTE_ARRAY_OFFSET, vector, 1L * rows);
    return new HeapVector(type, vector, rows) {
      public byte getByte(int row) {
        return values[row];
      }
    };
  }

  static HeapVector shorts(DataType type, ValueVector vector, int rows) {
    short[] values = HeapVector.filled(new short[rows], Platform.SHORT_ARRAY_OFFSET, vector, 2L * rows);
    return new HeapVector(type, vector, rows) {
      public short getShort(int row) {
        return values[row];
      }
    };
  }

  static HeapVector ints(DataType type, ValueVector vector, int rows) {
    int[] values = HeapVector.filled(new int[rows], Platform.INT_ARRAY_OFFSET, vector, 4L * rows);
    return new HeapVector(type, vector, rows) {
      public int getInt(int row) {
        return values[row];
      }
    };
  }

  static HeapVector longs(DataType type, ValueVector vector, int rows) {
    long[] values = HeapVector.filled(new long[rows], Platform.LONG_ARRAY_OFFSET, vector, 8L * rows);
    return new HeapVector(type, vector, rows) {
      public long getLong(int row) {
        return values[row];
      }
    };
  }

  static HeapVector floats(DataType type, ValueVector vector, int rows) {
    float[] values = HeapVector.filled(new float[rows], Platform.FLOAT_ARRAY_OFFSET, vector, 4L * rows);
    return new HeapVector(type, vector, rows) {
      public float getFloat(int row) {
        return values[row];
      }
    };
  }

  static HeapVector doubles(DataType type, ValueVector vector, int rows) {
    double[] values = HeapVector.filled(new double[rows], Platform.DOUBLE_ARRAY_OFFSET, vector, 8L * rows);
    return new HeapVector(type, vector, rows) {
      public double getDouble(int row) {
        return values[row];
      }
    };
  }
}
