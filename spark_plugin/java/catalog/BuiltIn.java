package pydelta.catalog;

import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.V1Table;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Utils$;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.internal.SQLConf$;
import pydelta.tables.Errors;
import scala.Option;

/**
 * Tables of other sources, as Spark's session catalog loads them if it has no extension.
 *
 * If it has one, it leaves tables of sources of the second version to the extension. It reads the setting each time, so it is
 * asked again without the setting.
 */
class BuiltIn {
  static final String CATALOG_CONF = "spark.sql.catalog.spark_catalog";

  private BuiltIn() {}

  static Table resolved(SessionTables catalog, Identifier ident, Table catalogTable) {
    if (!(catalogTable instanceof V1Table table)) return catalogTable;
    Option<String> provider = table.v1Table().provider();
    if (provider.isEmpty() || DataSourceV2Utils$.MODULE$.getTableProvider(provider.get(), SQLConf.get()).isEmpty()) {
      return catalogTable;
    }
    SQLConf conf = SQLConf.get().clone();
    conf.setConfString(CATALOG_CONF, "builtin");
    return SQLConf$.MODULE$.withExistingConf(conf, () -> Errors.undeclared(() -> catalog.asEntered(ident)));
  }
}
