package pydelta.messages;

import org.apache.spark.sql.execution.datasources.v2.python.PythonDataSourceReadInfo;
import pydelta.rule.Lists;

/** The source's plan of a batch read: the read function, the partitions, and their messages. */
public class PlannedScan extends PartitionMessages {
  private final PythonDataSourceReadInfo readInfo;
  private final String scanId;

  public PlannedScan(PythonDataSourceReadInfo readInfo, String scanId) {
    super(Lists.toJava(readInfo.partitions()).toArray(new byte[0][]));
    this.readInfo = readInfo;
    this.scanId = scanId;
  }

  /** The id in the request. */
  public String scanId() {
    return scanId;
  }

  public PythonDataSourceReadInfo readInfo() {
    return readInfo;
  }
}
