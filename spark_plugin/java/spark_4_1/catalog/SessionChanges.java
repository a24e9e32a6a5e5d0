package pydelta.catalog;

import org.apache.spark.sql.connector.catalog.DelegatingCatalogExtension;
import org.apache.spark.sql.connector.catalog.StagingTableCatalog;

/** Spark 4.1 does not read `CHANGES FROM`. */
abstract class SessionChanges extends DelegatingCatalogExtension implements StagingTableCatalog {}
