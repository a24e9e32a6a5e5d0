/**
 * SQL statements and procedures that the driver's own Python runs.
 *
 * <p>StatementRouter reads the first word of a statement in scripts, EXECUTE IMMEDIATE and the JVM. A statement that Python may
 * know becomes a RoutedStatement, and Spark's analyzer replaces it by Python's result. CALL becomes a TableProcedure. DriverPython
 * sends both to Python, and PythonRequest keeps the Java objects of a request for Python to fetch.
 *
 * <p>In: the text of a statement, or a procedure with its arguments. Out: rows, or Python's error.
 */
package pydelta.statements;
