package pydelta.statements;

import org.apache.spark.sql.Row;
import org.apache.spark.sql.catalyst.CatalystTypeConverters$;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.connector.read.LocalScan;
import org.apache.spark.sql.types.StructType;
import scala.Function1;

/** The rows of a frame, as the result of a procedure. */
record ResultScan(StructType readSchema, InternalRow[] rows) implements LocalScan {
  static ResultScan of(Dataset<Row> frame) {
    Function1<Object, Object> convert = CatalystTypeConverters$.MODULE$.createToCatalystConverter(frame.schema());
    return new ResultScan(frame.schema(), frame.collectAsList().stream().map(convert::apply).toArray(InternalRow[]::new));
  }
}
