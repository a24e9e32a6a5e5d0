package pydelta.readers;

import java.math.BigDecimal;
import java.math.BigInteger;
import org.apache.arrow.vector.ValueVector;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.unsafe.Platform;

/** Arrow's decimals: 128 bits of two's complement, low half first. */
final class DecimalHeapVector extends HeapVector {
  private final long[] halves;

  DecimalHeapVector(DataType type, ValueVector vector, int rows) {
    super(type, vector, rows);
    this.halves = filled(new long[2 * rows], Platform.LONG_ARRAY_OFFSET, vector, 16L * rows);
  }

  public Decimal getDecimal(int row, int precision, int scale) {
    if (isNullAt(row)) return null;
    long low = halves[2 * row];
    long high = halves[2 * row + 1];
    boolean isLong = high == low >> 63;
    if (isLong && precision <= Decimal.MAX_LONG_DIGITS()) return Decimal.apply(low, precision, scale);
    return Decimal.apply(new BigDecimal(unscaled(high, low), scale), precision, scale);
  }

  private static BigInteger unscaled(long high, long low) {
    byte[] bytes = new byte[16];
    for (int i = 0; i < 8; i++) {
      bytes[i] = (byte) (high >> (56 - 8 * i));
      bytes[8 + i] = (byte) (low >> (56 - 8 * i));
    }
    return new BigInteger(bytes);
  }
}
