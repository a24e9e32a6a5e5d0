package pydelta.catalog;

import java.util.List;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.catalog.UnresolvedCatalogRelation;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.CatalogV2Implicits$;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.V1Table;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation$;
import pydelta.statements.ResolutionRules;
import pydelta.tables.SourceTable;
import scala.Option;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;
import scala.runtime.AbstractPartialFunction;

/**
 * Opens our tables as SessionTables does, if another extension of the session catalog (delta-spark's) leaves them to Spark. Spark
 * itself does not know tables of Python sources there.
 */
class EnteredTables extends Rule<LogicalPlan> {
  private EnteredTables() {}

  /**
   * Puts the rule before Spark's own rules for such tables, once, and only if the session has another catalog than Spark's and
   * ours, since every query runs it. Raises if this Spark keeps its rules elsewhere.
   */
  static void enterIn(SparkSession session) throws Exception {
    String catalog = session.conf().get(BuiltIn.CATALOG_CONF, "builtin");
    if (catalog.equals("builtin") || catalog.equals(SessionTables.class.getName())) return;
    List<Rule<LogicalPlan>> rules = ResolutionRules.of(session);
    rules.removeIf(rule -> rule.getClass().getName().equals(EnteredTables.class.getName()));
    rules.add(0, new EnteredTables());
    ResolutionRules.set(session, rules);
  }

  public String ruleName() {
    return EnteredTables.class.getName();
  }

  public LogicalPlan apply(LogicalPlan plan) {
    return plan.resolveOperators(new Opening());
  }

  private static class Opening extends AbstractPartialFunction<LogicalPlan, LogicalPlan> {
    public boolean isDefinedAt(LogicalPlan node) {
      if (!(node instanceof UnresolvedCatalogRelation left)) return false;
      Option<String> provider = left.tableMeta().provider();
      return !left.isStreaming() && provider.isDefined() && Entry.isOurs(provider.get());
    }

    public LogicalPlan apply(LogicalPlan node) {
      return opened((UnresolvedCatalogRelation) node);
    }
  }

  private static LogicalPlan opened(UnresolvedCatalogRelation left) {
    TableIdentifier name = left.tableMeta().identifier();
    Seq<String> parts = CollectionConverters.asScala(List.of(name.database().get(), name.table())).toSeq();
    Identifier ident = CatalogV2Implicits$.MODULE$.MultipartIdentifierHelper(parts).asIdentifier();
    SourceTable table = new Entry(ident, new V1Table(left.tableMeta())).open(null, null);
    return DataSourceV2Relation$.MODULE$.create(table, Option.empty(), Option.empty(), left.options(), Option.empty());
  }
}
