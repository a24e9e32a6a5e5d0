package pydelta.parquet;

import java.io.Serializable;
import org.apache.spark.sql.execution.datasources.PartitionedFile;

/** A data file, or a part of one, for Spark's Parquet reader. deleted: where its deleted rows are stored; null if it has none. */
record NativeFile(PartitionedFile file, DeletionVector deleted) implements Serializable {}
