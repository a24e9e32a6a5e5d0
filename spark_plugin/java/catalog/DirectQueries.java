package pydelta.catalog;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.analysis.RelationTimeTravel;
import org.apache.spark.sql.catalyst.analysis.UnresolvedRelation;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.classic.SparkSession;
import scala.collection.immutable.Seq;

/**
 * Spark's rule for parquet.`/path`, which waits while a path of ours is not yet resolved.
 *
 * A catalog here has the name of a data source. Spark's rule takes such a name for a query on files and refuses it, even where the
 * relation only waits for its TIMESTAMP AS OF to be resolved, in the next round of the analyzer.
 */
class DirectQueries extends Rule {
  private static final String SPARKS = "org.apache.spark.sql.execution.datasources.ResolveSQLOnFile";

  private final Rule sparks;

  private DirectQueries(Rule sparks) {
    this.sparks = sparks;
  }

  /** In the place of Spark's rule, in the analyzer of a session. Raises where this Spark keeps its rules elsewhere. */
  static void waitIn(SparkSession session) throws Exception {
    Seq rules = ResolutionRules.of(session);
    List changed = new ArrayList();
    for (int i = 0; i < rules.length(); i++) {
      Rule rule = (Rule) rules.apply(i);
      changed.add(rule.getClass().getName().equals(SPARKS) ? new DirectQueries(rule) : rule);
    }
    ResolutionRules.set(session, changed);
  }

  public String ruleName() {
    return sparks.ruleName();
  }

  public TreeNode apply(TreeNode plan) {
    return isWaiting((LogicalPlan) plan) ? plan : sparks.apply(plan);
  }

  private static boolean isWaiting(LogicalPlan plan) {
    if (plan instanceof RelationTimeTravel) return isOurs(((RelationTimeTravel) plan).relation());
    for (int i = 0; i < plan.children().length(); i++) {
      if (isWaiting(plan.children().apply(i))) return true;
    }
    return false;
  }

  private static boolean isOurs(LogicalPlan relation) {
    if (!(relation instanceof UnresolvedRelation)) return false;
    Seq name = ((UnresolvedRelation) relation).multipartIdentifier();
    return name.length() == 2 && Source.FORMAT.equalsIgnoreCase((String) name.head()) && ((String) name.last()).indexOf('/') >= 0;
  }
}
