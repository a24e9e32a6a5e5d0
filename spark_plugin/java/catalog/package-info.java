/**
 * Tables in SQL, which Spark loads by name, and statements that Python carries out.
 *
 * <pre>
 * SELECT ... FROM pydelta.`/path` VERSION AS OF 3     -&gt; PathCatalog   -&gt; Source.open -&gt; Python, as for load
 * SELECT ... FROM shop.sales TIMESTAMP AS OF ...      -&gt; SessionTables -&gt; Entry       -&gt; the same
 * SELECT ... FROM table_changes('shop.sales', 3)      -&gt; TableChanges                 -&gt; the same
 * SELECT ... FROM shop.sales CHANGES FROM VERSION 3   -&gt; SessionChanges -&gt; SourceChangelog (since Spark 4.2)
 * CALL pydelta.system.optimize('shop.sales')          -&gt; PathCatalog   -&gt; TableProcedure -&gt; DriverPython
 * INSERT INTO shop.sales ...                          -&gt; SourceWriteBuilder -&gt; Spark's writer of a Python source
 * </pre>
 *
 * <p>SourceTable is pinned to one version. It is a PythonTable, so that the rule reopens its scans.
 */
package pydelta.catalog;
