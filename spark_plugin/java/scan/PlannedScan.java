package pydelta.scan;

import org.apache.spark.sql.execution.datasources.v2.python.PythonDataSourceReadInfo;
import scala.collection.immutable.Seq;

/** A planning of the source for a batch read: the read function, the partitions, and what they say to the rule. */
public class PlannedScan extends PlanNotes {
  private final PythonDataSourceReadInfo readInfo;

  PlannedScan(PythonDataSourceReadInfo readInfo, String nonce) {
    super(pickled(readInfo.partitions()), nonce);
    this.readInfo = readInfo;
  }

  private static byte[][] pickled(Seq partitions) {
    byte[][] pickled = new byte[partitions.length()][];
    for (int i = 0; i < pickled.length; i++) pickled[i] = (byte[]) partitions.apply(i);
    return pickled;
  }

  PythonDataSourceReadInfo readInfo() {
    return readInfo;
  }
}
