/**
 * Spark's own Parquet reader for simple files, on the driver and in executors.
 *
 * <p>A task knows how either reader reads it. NativeReader uses Spark's reader, and continues in Python at the first row that
 * Spark's reader cannot read. (The name `native` is a reserved word of Java.)
 */
package pydelta.parquet;
