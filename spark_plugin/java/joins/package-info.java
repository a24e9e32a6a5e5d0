/**
 * Joins: what Spark is told of a scan when it plans joins, and files that the other side of a join chooses.
 *
 * <p>The second choice changes the list of files alone. The scan stays the same object, because other places of the plan may hold
 * it.
 */
package pydelta.joins;
