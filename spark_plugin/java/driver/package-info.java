/**
 * What the JVM asks of the driver's own Python: plans, loads, rows of small queries, and batch writes.
 *
 * <p>All requests go through {@link DriverChannel}; "The channel to the driver's Python" in ARCHITECTURE.md describes it. If an
 * answer fails, a worker of Spark does the work and raises what is the user's fault. After three failures in a row, or the first
 * silence, Python is not asked again. A commit that may have started is never repeated.
 */
package pydelta.driver;
