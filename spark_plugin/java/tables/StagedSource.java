package pydelta.tables;

import java.util.EnumSet;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.connector.catalog.Column;
import org.apache.spark.sql.connector.catalog.StagedTable;
import org.apache.spark.sql.connector.catalog.SupportsWrite;
import org.apache.spark.sql.connector.catalog.TableCapability;
import org.apache.spark.sql.connector.write.LogicalWriteInfo;
import org.apache.spark.sql.connector.write.WriteBuilder;

/** A table of CREATE ... AS SELECT or REPLACE. The write itself creates it, in one commit. After that its name is entered. */
public class StagedSource implements StagedTable, SupportsWrite {
  private final String name;
  private final NewTable made;
  private final boolean replaces;
  private final boolean mustExist;
  private final Runnable entering;
  private boolean isWritten = false;

  /** replaces: an existing table, if there is one. mustExist: there must be one. entering: what to do after the write. */
  public StagedSource(String name, NewTable made, boolean replaces, boolean mustExist, Runnable entering) {
    this.name = name;
    this.made = made;
    this.replaces = replaces;
    this.mustExist = mustExist;
    this.entering = entering;
  }

  public String name() {
    return name;
  }

  public Column[] columns() {
    return made.givenColumns();
  }

  public Set<TableCapability> capabilities() {
    return EnumSet.of(TableCapability.BATCH_WRITE, TableCapability.TRUNCATE, TableCapability.OVERWRITE_BY_FILTER);
  }

  public WriteBuilder newWriteBuilder(LogicalWriteInfo info) {
    isWritten = true;
    Map<String, String> own = made.writeOptions(replaces);
    return new SourceWriteBuilder(info, made.columns(), own, made.partitionBy(), made.properties());
  }

  /** The rows are in the log now. A REPLACE without rows is run here. */
  public void commitStagedChanges() {
    if (!isWritten) made.build(mustExist ? "replace" : "createOrReplace", false);
    if (entering != null) entering.run();
  }

  /** The writer has deleted what it wrote. */
  public void abortStagedChanges() {}
}
