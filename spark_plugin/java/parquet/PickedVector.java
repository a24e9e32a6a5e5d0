package pydelta.parquet;

import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarArray;
import org.apache.spark.sql.vectorized.ColumnarMap;
import org.apache.spark.unsafe.types.UTF8String;

/** Some rows of a column. It is valid as long as the column is. */
class PickedVector extends ColumnVector {
  private final ColumnVector column;
  private final int[] places;

  /** places: row -> the row of the column. */
  PickedVector(ColumnVector column, int[] places) {
    super(column.dataType());
    this.column = column;
    this.places = places;
  }

  /** The column may have nulls even if none of these rows is null. */
  public boolean hasNull() {
    return column.hasNull();
  }

  public int numNulls() {
    if (!column.hasNull()) return 0;
    int nulls = 0;
    for (int place : places) {
      if (column.isNullAt(place)) nulls++;
    }
    return nulls;
  }

  /** The reader that made the column closes it. */
  public void close() {
  }

  public boolean isNullAt(int row) {
    return column.isNullAt(places[row]);
  }

  public boolean getBoolean(int row) {
    return column.getBoolean(places[row]);
  }

  public byte getByte(int row) {
    return column.getByte(places[row]);
  }

  public short getShort(int row) {
    return column.getShort(places[row]);
  }

  public int getInt(int row) {
    return column.getInt(places[row]);
  }

  public long getLong(int row) {
    return column.getLong(places[row]);
  }

  public float getFloat(int row) {
    return column.getFloat(places[row]);
  }

  public double getDouble(int row) {
    return column.getDouble(places[row]);
  }

  public Decimal getDecimal(int row, int precision, int scale) {
    return column.getDecimal(places[row], precision, scale);
  }

  public UTF8String getUTF8String(int row) {
    return column.getUTF8String(places[row]);
  }

  public byte[] getBinary(int row) {
    return column.getBinary(places[row]);
  }

  public ColumnarArray getArray(int row) {
    return column.getArray(places[row]);
  }

  public ColumnarMap getMap(int row) {
    return column.getMap(places[row]);
  }

  /** The child of a struct: each field has as many rows as the struct. */
  public ColumnVector getChild(int ordinal) {
    return new PickedVector(column.getChild(ordinal), places);
  }
}
