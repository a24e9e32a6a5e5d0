package pydelta.catalog;

import java.util.Map;
import org.apache.spark.sql.catalyst.analysis.NoSuchTableException;
import org.apache.spark.sql.connector.catalog.Changelog;
import org.apache.spark.sql.connector.catalog.ChangelogContext;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.ProcedureCatalog;
import org.apache.spark.sql.connector.catalog.StagingTableCatalog;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
import pydelta.tables.SourceTable;

/** The change feeds of tables by their paths, for `CHANGES FROM`. */
abstract class PathChanges implements StagingTableCatalog, ProcedureCatalog {
  abstract String called(Identifier ident);

  /** range: options of reads, as SourceChangelog makes them. */
  abstract SourceTable changes(Identifier ident, Map<String, String> range) throws NoSuchTableException;

  public Changelog loadChangelog(Identifier ident, ChangelogContext context, CaseInsensitiveStringMap options)
      throws NoSuchTableException {
    try {
      return new SourceChangelog(changes(ident, SourceChangelog.range(called(ident), context)));
    } catch (UnsupportedOperationException error) {
      throw SourceChangelog.heard(error);
    }
  }
}
