package pydelta.parquet;

import java.io.IOException;
import java.io.Serializable;
import java.util.zip.CRC32;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.catalyst.InternalRow;

/**
 * Where the deleted rows of a data file are stored: a vector in a file below the table's root (Deletion Vector Descriptor Schema;
 * Deletion Vector File Storage Format).
 */
record DeletionVector(String root, String text, int offset, int size, long cardinality) implements Serializable {
  private static final String ALPHABET = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#";
  private static final int ID_TEXT = 20;
  private static final byte FILE_VERSION = 1;
  private static final int FRAME_BYTES = 8;

  /**
   * told: storageType, pathOrInlineDv, offset, sizeInBytes and cardinality of a vector of type u, as native_files.py chooses
   * them.
   */
  static DeletionVector of(InternalRow row, String root) {
    return new DeletionVector(root, row.getUTF8String(1).toString(), row.getInt(2), row.getInt(3), row.getLong(4));
  }

  /** Raises IOException if any part of it differs from the log, or is of an unknown form. Python then says what is wrong. */
  DeletedRows read() throws IOException {
    Path path = new Path("file", null, root + "/" + name());
    FileSystem files = path.getFileSystem(RawFiles.settings());
    if (size < 0 || offset < 0 || (long) offset + FRAME_BYTES + size > files.getFileStatus(path).getLen()) {
      throw new IOException(path + " ends before the deletion vector at " + offset);
    }
    byte[] data = new byte[size];
    try (FSDataInputStream stream = files.open(path)) {
      if (stream.readByte() != FILE_VERSION) throw new IOException(path + " has another version");
      stream.seek(offset);
      if (stream.readInt() != size) throw new IOException(path + " has a deletion vector of another size at " + offset);
      stream.readFully(data);
      CRC32 sum = new CRC32();
      sum.update(data);
      if (stream.readInt() != (int) sum.getValue()) throw new IOException(path + " is damaged at " + offset);
    }
    DeletedRows rows = DeletedRows.of(data);
    if (rows.count() != cardinality) throw new IOException(path + " does not hold " + cardinality + " rows at " + offset);
    return rows;
  }

  /** The name of a random directory, and the file's id in base 85. */
  private String name() throws IOException {
    String prefix = text.substring(0, Math.max(0, text.length() - ID_TEXT));
    for (int i = 0; i < prefix.length(); i++) {
      char letter = prefix.charAt(i);
      if (letter > 'z' || !Character.isLetterOrDigit(letter)) throw new IOException("another kind of path: " + text);
    }
    String digits = hexadecimal(text.substring(prefix.length()));
    String id = String.join(
        "-", digits.substring(0, 8), digits.substring(8, 12), digits.substring(12, 16), digits.substring(16, 20),
        digits.substring(20));
    return (prefix.isEmpty() ? "" : prefix + "/") + "deletion_vector_" + id + ".bin";
  }

  private static String hexadecimal(String id) throws IOException {
    if (id.length() != ID_TEXT) throw new IOException("no id: " + id);
    StringBuilder digits = new StringBuilder();
    for (int start = 0; start < ID_TEXT; start += 5) {
      long value = 0;
      for (int i = start; i < start + 5; i++) {
        int digit = ALPHABET.indexOf(id.charAt(i));
        if (digit < 0) throw new IOException("no id: " + id);
        value = value * 85 + digit;
      }
      if (value >> 32 != 0) throw new IOException("no id: " + id);
      digits.append("%08x".formatted(value));
    }
    return digits.toString();
  }
}
