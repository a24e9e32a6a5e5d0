package pydelta.rule;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.plans.logical.Filter;
import org.apache.spark.sql.catalyst.plans.logical.LocalRelation;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2ScanRelation;
import pydelta.scan.PredicateJson;
import pydelta.scan.PrunedScan;
import scala.collection.immutable.Seq;

/** What an optimized plan asks of one scan in it, without running anything: which rows it wants at most. */
public class WantedRows {
  private final String option;
  private final String value;
  private final List scans = new ArrayList();

  /** The scan is known by a read option that no other scan has. */
  private WantedRows(String option, String value) {
    this.option = option;
    this.value = value;
  }

  /**
   * JSON text: `found`, how often the scan is in the plan; `predicates`, what it was handed, if it is there once; `exact`,
   * whether the plan wants exactly these rows of it; `empty`, whether the plan gives no rows, whatever the scan has.
   */
  static String of(LogicalPlan plan, String option, String value) {
    WantedRows asked = new WantedRows(option, value);
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
      exact = isExact(plan, (DataSourceV2ScanRelation) asked.scans.get(0));
    }
    return out.append("], \"exact\": ").append(exact).append("}").toString();
  }

  private void collect(LogicalPlan plan) {
    if (plan instanceof DataSourceV2ScanRelation relation) {
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

  /** Whether the conditions between the plan and the scan are the predicates that were handed over, and there is nothing else. */
  public static boolean isExact(LogicalPlan plan, DataSourceV2ScanRelation relation) {
    if (((PrunedScan) relation.scan()).hasLimit()) return false;
    List conditions = new ArrayList();
    while (plan != relation) {
      if (plan instanceof Filter) {
        conditions.addAll(Conditions.conjuncts(((Filter) plan).condition()));
        plan = ((Filter) plan).child();
      } else if (plan instanceof Project) {
        plan = ((Project) plan).child();
      } else {
        return false;
      }
    }
    List predicates = ((PrunedScan) relation.scan()).predicates();
    Set handedOver = new HashSet();
    for (int i = 0; i < predicates.size(); i++) handedOver.add(((PredicateJson) predicates.get(i)).json());
    Set wanted = new HashSet();
    for (int i = 0; i < conditions.size(); i++) wanted.add(json((Expression) conditions.get(i), relation));
    return wanted.equals(handedOver);
  }

  /** The condition as Spark's push-down would hand it over; null if it would not, or where it is not about the scan's columns. */
  private static String json(Expression condition, DataSourceV2ScanRelation relation) {
    if (!condition.references().subsetOf(relation.outputSet())) return null;
    PredicateJson json = Conditions.handedOver(condition, (Seq) relation.output(), ((PrunedScan) relation.scan()).fullSchema());
    return json == null ? null : json.json();
  }
}
