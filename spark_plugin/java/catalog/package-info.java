/**
 * The catalogs, through which SQL loads tables by path and by name.
 *
 * <pre>
 * SELECT ... FROM pydelta.`/path` VERSION AS OF 3     -&gt; PathCatalog   -&gt; Source.open -&gt; Python, as for load
 * SELECT ... FROM main.sales.orders                    -&gt; UnityCatalog  -&gt; the same, with the path uc://main.sales.orders
 * SELECT ... FROM shop.sales TIMESTAMP AS OF ...      -&gt; SessionTables -&gt; Entry       -&gt; the same
 * SELECT ... FROM table_changes('shop.sales', 3)      -&gt; TableChanges                 -&gt; the same
 * SELECT ... FROM shop.sales CHANGES FROM VERSION 3   -&gt; SessionChanges -&gt; SourceChangelog (since Spark 4.2)
 * CALL pydelta.system.optimize('shop.sales')          -&gt; PathCatalog   -&gt; statements.TableProcedure
 * INSERT INTO shop.sales ...                          -&gt; tables.SourceTable
 * </pre>
 *
 * <p>In: names, paths and versions in SQL. Out: tables (package tables) and procedures (package statements).
 */
package pydelta.catalog;
