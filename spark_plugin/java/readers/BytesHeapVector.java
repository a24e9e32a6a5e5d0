package pydelta.readers;

import java.util.Arrays;
import org.apache.arrow.vector.ValueVector;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.unsafe.Platform;
import org.apache.spark.unsafe.types.UTF8String;

/** Texts and binaries: the bytes of all rows in one array. */
final class BytesHeapVector extends HeapVector {
  /** Row i is bytes offsets[i] - offsets[0] to offsets[i + 1] - offsets[0]. */
  private final int[] offsets;
  private final byte[] bytes;

  BytesHeapVector(DataType type, ValueVector vector, int rows) {
    super(type, vector, rows);
    this.offsets = new int[rows + 1];
    copy(vector.getOffsetBuffer(), 0, offsets, Platform.INT_ARRAY_OFFSET, 4L * (rows + 1));
    this.bytes = bytes(vector.getDataBuffer(), offsets[0], offsets[rows] - offsets[0]);
  }

  public UTF8String getUTF8String(int row) {
    if (isNullAt(row)) return null;
    return UTF8String.fromBytes(bytes, offsets[row] - offsets[0], offsets[row + 1] - offsets[row]);
  }

  public byte[] getBinary(int row) {
    if (isNullAt(row)) return null;
    return Arrays.copyOfRange(bytes, offsets[row] - offsets[0], offsets[row + 1] - offsets[0]);
  }
}
