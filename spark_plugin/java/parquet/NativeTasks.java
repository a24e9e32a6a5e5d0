package pydelta.parquet;

import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;

/** The tasks of a scan, some of which Spark's Parquet reader reads, and the factory that reads all of them. */
public record NativeTasks(InputPartition[] partitions, PartitionReaderFactory factory) {}
