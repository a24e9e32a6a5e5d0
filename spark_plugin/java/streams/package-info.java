/**
 * Streams. Spark's push-down leaves streams out, and it finds the source of a batch's rows by the stream of its scan. So a stream
 * of pydelta equals its views, each of which has some of the columns.
 *
 * <p>readStream.load puts StreamedTable into the frame. StreamRunner asks the driver's own Python for offsets and files, and from
 * its first failure on Spark's process of the stream.
 */
package pydelta.streams;
