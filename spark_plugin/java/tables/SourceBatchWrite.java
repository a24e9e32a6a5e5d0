package pydelta.tables;

import org.apache.spark.sql.connector.write.BatchWrite;
import org.apache.spark.sql.connector.write.DataWriterFactory;
import org.apache.spark.sql.connector.write.PhysicalWriteInfo;
import org.apache.spark.sql.connector.write.WriterCommitMessage;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/**
 * Spark's batch write of a Python source. It resets the session's transaction as a save does (reset_transaction in settings.py).
 */
class SourceBatchWrite implements BatchWrite {
  private static final String VERSION_CONF = "spark.databricks.delta.write.txnVersion";
  private static final String RESET_CONF = "spark.databricks.delta.write.txnVersion.autoReset.enabled";

  private final BatchWrite write;
  private final CaseInsensitiveStringMap options;

  SourceBatchWrite(BatchWrite write, CaseInsensitiveStringMap options) {
    this.write = write;
    this.options = options;
  }

  public DataWriterFactory createBatchWriterFactory(PhysicalWriteInfo info) {
    return write.createBatchWriterFactory(info);
  }

  public boolean useCommitCoordinator() {
    return write.useCommitCoordinator();
  }

  public void onDataWriterCommit(WriterCommitMessage message) {
    write.onDataWriterCommit(message);
  }

  public void commit(WriterCommitMessage[] messages) {
    write.commit(messages);
    boolean ofSession = !options.containsKey("txnVersion") && !options.containsKey("txnAppId");
    if (ofSession && "true".equalsIgnoreCase(Source.session().conf().get(RESET_CONF, "false"))) {
      Source.session().conf().unset(VERSION_CONF);
    }
  }

  public void abort(WriterCommitMessage[] messages) {
    write.abort(messages);
  }
}
