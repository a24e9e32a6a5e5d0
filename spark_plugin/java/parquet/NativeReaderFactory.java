package pydelta.parquet;

import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.execution.datasources.PartitionedFile;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.vectorized.ColumnarBatch;
import scala.Function1;
import scala.collection.Iterator;

/**
 * Goes to the executors. It opens Spark's Parquet reader for the tasks that are for it, and Python for the others.
 *
 * python: the factory of the scan without this; it returns rows or columns. open: returns the batches of a file, with the row
 * numbers after the columns of files; openWithoutNumbers: without these numbers, which cost a tenth of the time. stored: the
 * columns that are read from files. places: the position of each column of the scan in the batches of openWithoutNumbers. schema:
 * of the scan. columns: as in the partitions that Spark's reader may read.
 */
record NativeReaderFactory(
    PartitionReaderFactory python, boolean pythonGivesRows, Function1<PartitionedFile, ? extends Iterator<?>> open,
    Function1<PartitionedFile, ? extends Iterator<?>> openWithoutNumbers, FileSchema stored, int[] places, StructType schema,
    String columns) implements PartitionReaderFactory {

  public boolean supportColumnarReads(InputPartition partition) {
    return true;
  }

  public PartitionReader<InternalRow> createReader(InputPartition partition) {
    return python.createReader(forPython(partition));
  }

  public PartitionReader<ColumnarBatch> createColumnarReader(InputPartition partition) {
    if (partition instanceof NativePartition files && files.columns().equals(columns)) return new NativeReader(files, this);
    return inPython(partition);
  }

  PartitionReader<ColumnarBatch> inPython(InputPartition partition) {
    InputPartition own = forPython(partition);
    return pythonGivesRows ? new RowsAsColumns(python.createReader(own), schema) : python.createColumnarReader(own);
  }

  private static InputPartition forPython(InputPartition partition) {
    return partition instanceof NativePartition files ? files.inPython() : partition;
  }
}
