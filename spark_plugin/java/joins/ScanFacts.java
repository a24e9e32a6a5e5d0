package pydelta.joins;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import org.apache.spark.sql.connector.expressions.FieldReference;
import org.apache.spark.sql.connector.expressions.NamedReference;
import pydelta.rule.Lists;
import pydelta.scan.ReadPlan;

/** What the source tells of a planned scan for the planning of joins. */
public class ScanFacts {
  private final Map told;

  private ScanFacts(Map told) {
    this.told = told;
  }

  /** Null if the source tells nothing. */
  public static ScanFacts of(ReadPlan plan) {
    return plan.has("joins") ? new ScanFacts(plan.map("joins")) : null;
  }

  /** Null if it is not known. */
  Long rows() {
    Object rows = told.get("rows");
    return rows == null ? null : Long.valueOf(((Number) rows).longValue());
  }

  /** The columns of the scan by whose values whole files can be left out. */
  NamedReference[] partitionColumns() {
    List names = (List) told.get("partition_columns");
    NamedReference[] columns = new NamedReference[names.size()];
    for (int i = 0; i < columns.length; i++) columns[i] = reference((String) names.get(i));
    return columns;
  }

  /** ColumnNumbers of the columns of which something is told, by NamedReference. */
  Map columns() {
    Map columns = new HashMap();
    Map numbers = (Map) told.get("columns");
    for (Iterator each = numbers.keySet().iterator(); each.hasNext();) {
      String name = (String) each.next();
      columns.put(reference(name), new ColumnNumbers((Map) numbers.get(name)));
    }
    return columns;
  }

  /** The name is one part, whatever is in it. */
  private static NamedReference reference(String name) {
    List parts = new ArrayList();
    parts.add(name);
    return new FieldReference(Lists.toScala(parts));
  }
}
