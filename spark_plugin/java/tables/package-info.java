/**
 * Tables of the catalogs: pinned to one version, written to, created and altered.
 *
 * <p>{@link Source#open} asks Python for a table. {@link SourceTable} is a PythonTable, so that the rule reopens its scans. It
 * passes writes to Spark's writer of a Python source (SourceWriteBuilder). NewTable and Alteration are what CREATE, REPLACE and
 * ALTER change; Python carries them out.
 *
 * <p>In: names, options and definitions from the catalogs. Out: tables of Spark's connector API, and Python's errors with their
 * condition and SQLSTATE.
 */
package pydelta.tables;
