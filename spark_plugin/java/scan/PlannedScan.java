package pydelta.scan;

import org.apache.spark.sql.execution.datasources.v2.python.PythonDataSourceReadInfo;
import scala.collection.immutable.Seq;

/** A planning of the source for a batch read: the read function, the partitions, and their messages. */
public class PlannedScan extends PartitionMessages {
  private final PythonDataSourceReadInfo readInfo;
  private final String scanId;

  PlannedScan(PythonDataSourceReadInfo readInfo, String scanId) {
    super(pickled(readInfo.partitions()));
    this.readInfo = readInfo;
    this.scanId = scanId;
  }

  private static byte[][] pickled(Seq partitions) {
    byte[][] pickled = new byte[partitions.length()][];
    for (int i = 0; i < pickled.length; i++) pickled[i] = (byte[]) partitions.apply(i);
    return pickled;
  }

  /** Of the request. */
  String scanId() {
    return scanId;
  }

  PythonDataSourceReadInfo readInfo() {
    return readInfo;
  }
}
