package pydelta.catalog;

import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.V1Table;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Utils$;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.internal.SQLConf$;
import scala.Option;
import scala.runtime.AbstractFunction0;

/**
 * Tables of others, as Spark's own session catalog gives them where nobody extends it.
 *
 * Extended, it leaves tables of sources of the second version unresolved, for the extension to do so. It looks at the setting each
 * time, so it is asked once more without it.
 */
class BuiltIn extends AbstractFunction0 {
  static final String CATALOG_CONF = "spark.sql.catalog.spark_catalog";

  private final SessionTables catalog;
  private final Identifier ident;

  private BuiltIn(SessionTables catalog, Identifier ident) {
    this.catalog = catalog;
    this.ident = ident;
  }

  static Table resolved(SessionTables catalog, Identifier ident, Table found) throws NoSuchTableException {
    if (!(found instanceof V1Table)) return found;
    Option provider = ((V1Table) found).v1Table().provider();
    if (provider.isEmpty() || DataSourceV2Utils$.MODULE$.getTableProvider((String) provider.get(), SQLConf.get()).isEmpty()) {
      return found;
    }
    SQLConf conf = SQLConf.get().clone();
    conf.setConfString(CATALOG_CONF, "builtin");
    return (Table) SQLConf$.MODULE$.withExistingConf(conf, new BuiltIn(catalog, ident));
  }

  public Object apply() {
    try {
      return catalog.asEntered(ident);
    } catch (NoSuchTableException error) {
      throw Errors.unchecked(error);
    }
  }
}
