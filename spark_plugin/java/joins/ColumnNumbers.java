package pydelta.joins;

import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import org.apache.spark.sql.connector.read.colstats.ColumnStatistics;

/** What the source tells of one column of a scan. */
class ColumnNumbers implements ColumnStatistics {
  private final Map told;

  /** told: distinct, nulls; min and max as Spark counts values of the type (days), absent for a type without an order of numbers. */
  ColumnNumbers(Map told) {
    this.told = told;
  }

  public OptionalLong distinctCount() {
    return number("distinct");
  }

  public OptionalLong nullCount() {
    return number("nulls");
  }

  public Optional min() {
    return Optional.ofNullable(told.get("min"));
  }

  public Optional max() {
    return Optional.ofNullable(told.get("max"));
  }

  private OptionalLong number(String name) {
    Object value = told.get(name);
    return value == null ? OptionalLong.empty() : OptionalLong.of(((Number) value).longValue());
  }
}
