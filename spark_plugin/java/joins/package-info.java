/**
 * Joins: what Spark learns about a scan when it plans joins, and files that the other side of a join chooses.
 *
 * <p>The second choice changes only the list of files. The scan stays the same object, because other places of the plan may hold
 * it.
 */
package pydelta.joins;
