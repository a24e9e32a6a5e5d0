/**
 * Spark's own Parquet reader for simple files, on the driver and in executors.
 *
 * <p>A task knows how either reader reads it. NativeReader takes Spark's reader, and goes over to Python at the first row that
 * Spark's reader cannot give. (The name `native` is a reserved word of Java.)
 */
package pydelta.parquet;
