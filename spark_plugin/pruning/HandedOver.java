package pydelta.pruning;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.catalyst.expressions.And;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LocalRelation;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;

/** What an optimized plan asks of one scan in it, without running anything: which rows it wants at most. */
class HandedOver {
  private final String option;
  private final String value;
  private final List scans = new ArrayList();

  /** The scan is known by a read option that no other scan has. */
  private HandedOver(String option, String value) {
    this.option = option;
    this.value = value;
  }

  /**
   * JSON text: `found`, how often the scan is in the plan; `predicates`, what it was handed, if it is there once; `exact`,
   * whether the plan wants exactly these rows of it; `empty`, whether the plan gives no rows, whatever the scan has.
   */
  static String of(LogicalPlan plan, String option, String value) {
    HandedOver asked = new HandedOver(option, value);
    asked.collect(plan);
    StringBuilder out = new StringBuilder("{\"found\": ").append(asked.scans.size());
    out.append(", \"empty\": ").append(isEmpty(plan)).append(", \"predicates\": [");
    boolean exact = false;
    if (asked.scans.size() == 1) {
      PrunedScan scan = (PrunedScan) ((DataSourceV2ScanRelation) asked.scans.get(0)).scan();
      List predicates = scan.predicates();
      for (int i = 0; i < predicates.size(); i++) {
        if (i > 0) out.append(", ");
        out.append(((PredicateJson) predicates.get(i)).json());
      }
      exact = conjuncts(plan, asked.scans.get(0)) == predicates.size();
    }
    return out.append("], \"exact\": ").append(exact).append("}").toString();
  }

  private void collect(LogicalPlan plan) {
    if (plan instanceof DataSourceV2ScanRelation) {
      DataSourceV2ScanRelation relation = (DataSourceV2ScanRelation) plan;
      if (relation.scan() instanceof PrunedScan && value.equals(((PrunedScan) relation.scan()).option(option))) {
        scans.add(relation);
      }
    }
    scala.collection.immutable.Seq children = plan.children();
    for (int i = 0; i < children.length(); i++) collect((LogicalPlan) children.apply(i));
  }

  private static boolean isEmpty(LogicalPlan plan) {
    return plan instanceof LocalRelation && ((LocalRelation) plan).data().isEmpty();
  }

  /** How many conditions stand between the plan and the scan, each handed over or not; -1 if there is anything else. */
  private static int conjuncts(LogicalPlan plan, Object scan) {
    int count = 0;
    while (plan != scan) {
      if (plan instanceof Filter) {
        count += conjuncts(((Filter) plan).condition());
        plan = ((Filter) plan).child();
      } else if (plan instanceof Project) {
        plan = ((Project) plan).child();
      } else {
        return -1;
      }
    }
    return count;
  }

  private static int conjuncts(Expression condition) {
    if (!(condition instanceof And)) return 1;
    return conjuncts(((And) condition).left()) + conjuncts(((And) condition).right());
  }
}
