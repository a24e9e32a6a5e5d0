package pydelta.statements;

import org.apache.spark.sql.connector.catalog.procedures.SimpleProcedure;

/** A procedure whose parameters DESCRIBE PROCEDURE shows. */
interface DescribedProcedure extends SimpleProcedure {}
