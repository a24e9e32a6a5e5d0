package pydelta.tables;

import java.util.Arrays;
import java.util.Map;
import org.apache.spark.sql.connector.distributions.Distribution;
import org.apache.spark.sql.connector.distributions.Distributions;
import org.apache.spark.sql.connector.expressions.Expression;
import org.apache.spark.sql.connector.expressions.Expressions;
import org.apache.spark.sql.connector.expressions.SortOrder;
import org.apache.spark.sql.connector.write.BatchWrite;
import org.apache.spark.sql.connector.write.RequiresDistributionAndOrdering;
import org.apache.spark.sql.connector.write.Write;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** Spark's write of a Python source. An optimized write clusters rows by partition, as dataframe_api/batch_save.py does. */
class SourceWrite implements RequiresDistributionAndOrdering {
  private static final String OPTIMIZE_CONF = "spark.databricks.delta.optimizeWrite.enabled";
  private static final String OPTIMIZE_PROPERTY = "delta.autoOptimize.optimizeWrite";

  private final Write write;
  private final CaseInsensitiveStringMap options;
  private final String[] partitionColumns;
  private final Map<String, String> properties;

  SourceWrite(Write write, CaseInsensitiveStringMap options, String[] partitionColumns, Map<String, String> properties) {
    this.write = write;
    this.options = options;
    this.partitionColumns = partitionColumns;
    this.properties = properties;
  }

  public String description() {
    return write.description();
  }

  public BatchWrite toBatch() {
    return new SourceBatchWrite(write.toBatch(), options);
  }

  /** Without partition columns the rows stay where they are: Spark has no distribution here for parts of equal size. */
  public Distribution requiredDistribution() {
    if (!isOptimized() || partitionColumns.length == 0) return Distributions.unspecified();
    return Distributions.clustered(
        Arrays.stream(partitionColumns).map(Columns::quoted).map(Expressions::column).toArray(Expression[]::new));
  }

  /** Spark may split large partitions and combine small ones. */
  public boolean distributionStrictlyRequired() {
    return false;
  }

  public SortOrder[] requiredOrdering() {
    return new SortOrder[0];
  }

  /** The option, else the session's setting, else the table's property. */
  private boolean isOptimized() {
    String value = options.get("optimizeWrite");
    if (value == null) value = Source.session().conf().get(OPTIMIZE_CONF, null);
    if (value == null) value = new CaseInsensitiveStringMap(properties).get(OPTIMIZE_PROPERTY);
    return "true".equalsIgnoreCase(value);
  }
}
