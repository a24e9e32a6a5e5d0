package pydelta.statements;

import org.apache.spark.sql.connector.catalog.procedures.BoundProcedure;
import org.apache.spark.sql.connector.catalog.procedures.UnboundProcedure;

/** Spark 4.1 has no SimpleProcedure: its DESCRIBE PROCEDURE shows no parameters. */
interface DescribedProcedure extends UnboundProcedure, BoundProcedure {}
