package pydelta.parquet;

import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.types.StructType;
import scala.Function1;

/** Goes to the executors: Spark's Parquet reader for the tasks that are for it, Python for the others. */
public class NativeReaderFactory implements PartitionReaderFactory {
  private static final long serialVersionUID = 1L;

  private final PartitionReaderFactory python;
  private final boolean pythonGivesRows;
  private final Function1 open;
  private final Function1 openWithoutNumbers;
  private final FileSchema stored;
  private final int[] places;
  private final StructType schema;
  private final String columns;

  /**
   * python: the factory of the scan without this; it gives rows, or columns. open: PartitionedFile -> iterator of batches, with
   * the numbers of rows behind the columns of files; openWithoutNumbers: without these, which cost a tenth of the time. stored:
   * the columns that are read of files. places: of each column of the scan in the batches of open, the numbers left out. schema:
   * of the scan. columns: as of the partitions that are read so.
   */
  NativeReaderFactory(
      PartitionReaderFactory python, boolean pythonGivesRows, Function1 open, Function1 openWithoutNumbers, FileSchema stored,
      int[] places, StructType schema, String columns) {
    this.python = python;
    this.pythonGivesRows = pythonGivesRows;
    this.open = open;
    this.openWithoutNumbers = openWithoutNumbers;
    this.stored = stored;
    this.places = places;
    this.schema = schema;
    this.columns = columns;
  }

  public boolean supportColumnarReads(InputPartition partition) {
    return true;
  }

  public PartitionReader createReader(InputPartition partition) {
    return python.createReader(forPython(partition));
  }

  public PartitionReader createColumnarReader(InputPartition partition) {
    boolean isNative = partition instanceof NativePartition && ((NativePartition) partition).columns().equals(columns);
    return isNative ? new NativeReader((NativePartition) partition, this) : inPython(partition);
  }

  Function1 open() {
    return open;
  }

  Function1 openWithoutNumbers() {
    return openWithoutNumbers;
  }

  FileSchema stored() {
    return stored;
  }

  int[] places() {
    return places;
  }

  PartitionReader inPython(InputPartition partition) {
    InputPartition own = forPython(partition);
    return pythonGivesRows ? new RowsAsColumns(python.createReader(own), schema) : python.createColumnarReader(own);
  }

  private static InputPartition forPython(InputPartition partition) {
    return partition instanceof NativePartition ? ((NativePartition) partition).inPython() : partition;
  }
}
