package pydelta.parquet;

import java.util.List;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.expressions.filter.Predicate;
import org.apache.spark.sql.connector.read.InputPartition;
import org.apache.spark.sql.connector.read.PartitionReaderFactory;
import org.apache.spark.sql.types.StructType;

/**
 * A planned scan that has tasks which Spark's Parquet reader may read.
 *
 * schema: of the scan. physical: the same columns by their names in files. kinds: a letter for each column, d for one of data
 * files and p for one of partitions. root: of the table. predicates: by the names in files. verifiesChecksums: whether pages are
 * compared with their checksums. mostBatchBytes: for the values of one batch. partitions: for Python. files: for each partition
 * null, or an Arrow stream as native_files.py makes it. python: the factory, Spark's or ours, that reads all partitions in
 * Python.
 */
public record NativeRequest(
    SparkSession session, StructType schema, StructType physical, String kinds, String root, List<Predicate> predicates,
    boolean verifiesChecksums, long mostBatchBytes, InputPartition[] partitions, byte[][] files, PartitionReaderFactory python,
    boolean pythonGivesRows) {}
