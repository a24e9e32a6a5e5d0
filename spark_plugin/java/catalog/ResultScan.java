package pydelta.catalog;

import java.util.List;
import org.apache.spark.sql.catalyst.CatalystTypeConverters$;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.connector.read.LocalScan;
import org.apache.spark.sql.types.StructType;
import scala.Function1;

/** The rows of a frame as what a procedure returns. */
class ResultScan implements LocalScan {
  private final StructType columns;
  private final InternalRow[] rows;

  private ResultScan(StructType columns, InternalRow[] rows) {
    this.columns = columns;
    this.rows = rows;
  }

  static ResultScan of(Dataset frame) {
    StructType columns = frame.schema();
    Function1 convert = CatalystTypeConverters$.MODULE$.createToCatalystConverter(columns);
    List found = frame.collectAsList();
    InternalRow[] rows = new InternalRow[found.size()];
    for (int i = 0; i < rows.length; i++) rows[i] = (InternalRow) convert.apply(found.get(i));
    return new ResultScan(columns, rows);
  }

  public StructType readSchema() {
    return columns;
  }

  public InternalRow[] rows() {
    return rows;
  }
}
