package pydelta.rule;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.stream.Collectors;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LocalRelation;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import pydelta.messages.PredicateJson;
import pydelta.scan.PrunedScan;

/** What an optimized plan needs of one scan in it, without running anything: which rows it needs at most. */
public class WantedRows {
  private WantedRows() {}

  /**
   * JSON text: `found`, how often the plan has the scan; `predicates`, those that were pushed down to it, if the plan has it
   * once; `exact`, whether the plan needs exactly these rows of it; `empty`, whether the plan returns no rows, whatever rows the
   * scan has.
   *
   * The value of a read option identifies the scan; no other scan has this value.
   */
  static String of(LogicalPlan plan, String option, String value) {
    List<DataSourceV2ScanRelation> relations = relations(plan, option, value);
    DataSourceV2ScanRelation only = relations.size() == 1 ? relations.get(0) : null;
    List<PredicateJson> predicates = only == null ? List.of() : ((PrunedScan) only.scan()).predicates();
    return "{\"found\": " + relations.size() + ", \"empty\": " + isEmpty(plan)
        + ", \"predicates\": " + predicates.stream().map(PredicateJson::json).toList()
        + ", \"exact\": " + (only != null && isExact(plan, only)) + "}";
  }

  private static List<DataSourceV2ScanRelation> relations(LogicalPlan plan, String option, String value) {
    var relations = new ArrayList<DataSourceV2ScanRelation>();
    for (LogicalPlan node : Trees.nodes(plan)) {
      if (!(node instanceof DataSourceV2ScanRelation relation) || !(relation.scan() instanceof PrunedScan scan)) continue;
      if (value.equals(scan.option(option))) relations.add(relation);
    }
    return relations;
  }

  private static boolean isEmpty(LogicalPlan plan) {
    return plan instanceof LocalRelation relation && relation.data().isEmpty();
  }

  /**
   * Whether the conditions between the plan and the scan are exactly the predicates that were pushed down, and there are no other
   * nodes.
   */
  public static boolean isExact(LogicalPlan plan, DataSourceV2ScanRelation relation) {
    PrunedScan scan = (PrunedScan) relation.scan();
    if (scan.hasLimit()) return false;
    var conditions = new ArrayList<Expression>();
    while (plan != relation) {
      if (plan instanceof Filter filter) {
        conditions.addAll(Conditions.conjuncts(filter.condition()));
        plan = filter.child();
      } else if (plan instanceof Project project) {
        plan = project.child();
      } else {
        return false;
      }
    }
    var wanted = new HashSet<String>();
    for (Expression condition : conditions) wanted.add(json(condition, relation));
    return wanted.equals(scan.predicates().stream().map(PredicateJson::json).collect(Collectors.toSet()));
  }

  /** The condition as Spark's push-down would pass it on; null if it would not, or if it is not about the scan's columns. */
  private static String json(Expression condition, DataSourceV2ScanRelation relation) {
    if (!condition.references().subsetOf(relation.outputSet())) return null;
    PredicateJson json = Conditions.handedOver(condition, relation.output(), ((PrunedScan) relation.scan()).fullSchema());
    return json == null ? null : json.json();
  }
}
