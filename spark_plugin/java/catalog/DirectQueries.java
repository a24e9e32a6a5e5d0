package pydelta.catalog;

import java.util.List;
import org.apache.spark.sql.catalyst.analysis.RelationTimeTravel;
import org.apache.spark.sql.catalyst.analysis.UnresolvedRelation;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.classic.SparkSession;
import pydelta.statements.ResolutionRules;
import pydelta.tables.Source;
import scala.jdk.javaapi.CollectionConverters;

/**
 * Spark's rule for parquet.`/path`, which waits until our paths are resolved.
 *
 * Our catalog has the name of a data source. Spark's rule takes such a name for a query on files and refuses it, even if the
 * relation only waits for the next round of the analyzer, which resolves its TIMESTAMP AS OF.
 */
class DirectQueries extends Rule<LogicalPlan> {
  private static final String SPARKS = "org.apache.spark.sql.execution.datasources.ResolveSQLOnFile";

  private final Rule<LogicalPlan> sparks;

  private DirectQueries(Rule<LogicalPlan> sparks) {
    this.sparks = sparks;
  }

  /** Replaces Spark's rule in the analyzer of a session. Raises if this Spark keeps its rules elsewhere. */
  static void waitIn(SparkSession session) throws Exception {
    List<Rule<LogicalPlan>> rules = ResolutionRules.of(session);
    rules.replaceAll(rule -> rule.getClass().getName().equals(SPARKS) ? new DirectQueries(rule) : rule);
    ResolutionRules.set(session, rules);
  }

  public String ruleName() {
    return sparks.ruleName();
  }

  public LogicalPlan apply(LogicalPlan plan) {
    return isWaiting(plan) ? plan : sparks.apply(plan);
  }

  private static boolean isWaiting(LogicalPlan plan) {
    if (plan instanceof RelationTimeTravel travel) return isOurs(travel.relation());
    return CollectionConverters.asJava(plan.children()).stream().anyMatch(DirectQueries::isWaiting);
  }

  private static boolean isOurs(LogicalPlan plan) {
    if (!(plan instanceof UnresolvedRelation relation)) return false;
    List<String> name = CollectionConverters.asJava(relation.multipartIdentifier());
    return name.size() == 2 && Source.FORMAT.equalsIgnoreCase(name.get(0)) && name.get(1).indexOf('/') >= 0;
  }
}
