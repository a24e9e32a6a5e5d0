package pydelta.parquet;

import java.io.ByteArrayInputStream;
import java.io.DataInputStream;
import java.io.IOException;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.roaringbitmap.RoaringBitmap;

/** The deleted rows of a data file, by their numbers (Deletion Vector Format: RoaringBitmapArray, portable). */
class DeletedRows {
  private static final int PORTABLE_MAGIC = 1681511377;

  /** The upper half of a row's number -> the lower halves. */
  private final Map<Integer, RoaringBitmap> bitmaps = new HashMap<>();

  private DeletedRows() {}

  /** Raises if the bytes have another format. */
  static DeletedRows of(byte[] data) throws IOException {
    DataInputStream stream = new DataInputStream(new ByteArrayInputStream(data));
    if (Integer.reverseBytes(stream.readInt()) != PORTABLE_MAGIC) throw new IOException("another format of deletion vectors");
    DeletedRows rows = new DeletedRows();
    long count = Long.reverseBytes(stream.readLong());
    for (long i = 0; i < count; i++) {
      int key = Integer.reverseBytes(stream.readInt());
      RoaringBitmap bitmap = new RoaringBitmap();
      bitmap.deserialize(stream);
      if (rows.bitmaps.put(key, bitmap) != null) throw new IOException("a deletion vector with a key twice");
    }
    if (stream.read() >= 0) throw new IOException("a deletion vector with more behind it");
    return rows;
  }

  long count() {
    return bitmaps.values().stream().mapToLong(RoaringBitmap::getLongCardinality).sum();
  }

  /**
   * The positions in a batch of the rows that are not deleted; null if no row is deleted. numbers: of its rows, rising, without
   * nulls.
   */
  int[] left(ColumnVector numbers, int rows) {
    int[] places = new int[rows];
    int left = 0;
    long half = -1L;
    RoaringBitmap bitmap = null;
    for (int i = 0; i < rows; i++) {
      long number = numbers.getLong(i);
      if (number >>> 32 != half) {
        half = number >>> 32;
        bitmap = bitmaps.get((int) half);
      }
      if (bitmap == null || !bitmap.contains((int) number)) places[left++] = i;
    }
    return left == rows ? null : Arrays.copyOf(places, left);
  }
}
