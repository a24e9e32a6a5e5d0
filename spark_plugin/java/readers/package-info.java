/**
 * The columnar reader, on the driver and in executors.
 *
 * <p>ColumnarReader reads Arrow batches from Spark's Python worker. HeapVector copies each column into Java arrays: Spark fills
 * the same Arrow memory with the next batch, while some operators keep earlier batches. Executors that cannot have the jar read
 * rows.
 */
package pydelta.readers;
