package pydelta.catalog;

import java.util.Map;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.connector.catalog.Changelog;
import org.apache.spark.sql.connector.catalog.ChangelogContext;
import org.apache.spark.sql.connector.catalog.DelegatingCatalogExtension;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.StagingTableCatalog;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import pydelta.tables.SourceTable;

/** The change feeds of tables of the session catalog, for `CHANGES FROM`. */
abstract class SessionChanges extends DelegatingCatalogExtension implements StagingTableCatalog {
  abstract String called(Identifier ident);

  /** Whether a name is that of one of our tables. */
  abstract boolean isOurs(Identifier ident) throws NoSuchTableException;

  /** range: options of reads, as SourceChangelog makes them. */
  abstract SourceTable changes(Identifier ident, Map<String, String> range) throws NoSuchTableException;

  public Changelog loadChangelog(Identifier ident, ChangelogContext context, CaseInsensitiveStringMap options)
      throws NoSuchTableException {
    if (!isOurs(ident)) throw new UnsupportedOperationException();  // as Spark's own catalog, which has no changelogs
    try {
      return new SourceChangelog(changes(ident, SourceChangelog.range(called(ident), context)));
    } catch (UnsupportedOperationException error) {
      throw SourceChangelog.heard(error);
    }
  }
}
