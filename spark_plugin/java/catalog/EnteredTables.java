package pydelta.catalog;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.catalog.UnresolvedCatalogRelation;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.connector.catalog.CatalogV2Implicits$;
import org.apache.spark.sql.connector.catalog.Identifier;
import org.apache.spark.sql.connector.catalog.V1Table;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation$;
import scala.Function1;
import scala.Option;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;
import scala.runtime.AbstractPartialFunction;

/**
 * Tables of ours that another extension of the session catalog (delta-spark's) has left to Spark as it found them: opened as
 * SessionTables opens them. Spark itself knows no table of a Python source there.
 */
class EnteredTables extends Rule {
  private EnteredTables() {}

  /**
   * Before Spark's own rules for such tables, once, where the session has another catalog than Spark's and ours: all queries pass by.
   * Raises where this Spark keeps its rules elsewhere.
   */
  static void enterIn(SparkSession session) throws Exception {
    String catalog = session.conf().get(BuiltIn.CATALOG_CONF, "builtin");
    if (catalog.equals("builtin") || catalog.equals(SessionTables.class.getName())) return;
    Seq rules = ResolutionRules.of(session);
    List changed = new ArrayList();
    changed.add(new EnteredTables());
    for (int i = 0; i < rules.length(); i++) {
      if (!rules.apply(i).getClass().getName().equals(EnteredTables.class.getName())) changed.add(rules.apply(i));
    }
    ResolutionRules.set(session, changed);
  }

  public String ruleName() {
    return EnteredTables.class.getName();
  }

  public TreeNode apply(TreeNode plan) {
    return (TreeNode) ((LogicalPlan) plan).resolveOperators(new Opening());
  }

  private static class Opening extends AbstractPartialFunction {
    public boolean isDefinedAt(Object node) {
      if (!(node instanceof UnresolvedCatalogRelation left)) return false;
      Option provider = left.tableMeta().provider();
      return !left.isStreaming() && provider.isDefined() && Entry.isOurs((String) provider.get());
    }

    public Object applyOrElse(Object node, Function1 otherwise) {
      return isDefinedAt(node) ? opened((UnresolvedCatalogRelation) node) : otherwise.apply(node);
    }
  }

  private static LogicalPlan opened(UnresolvedCatalogRelation left) {
    TableIdentifier name = left.tableMeta().identifier();
    Seq parts = CollectionConverters.asScala(Arrays.asList(new Object[] {name.database().get(), name.table()})).toSeq();
    Identifier ident = CatalogV2Implicits$.MODULE$.MultipartIdentifierHelper(parts).asIdentifier();
    SourceTable table = Entry.of(ident, new V1Table(left.tableMeta())).open(null, null);
    return DataSourceV2Relation$.MODULE$.create(table, Option.empty(), Option.empty(), left.options(), Option.empty());
  }
}
