package pydelta.driver_planning;

import java.io.BufferedInputStream;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.File;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Function;
import org.apache.spark.sql.execution.datasources.v2.python.PythonDataSourceReadInfo;
import org.apache.spark.sql.internal.SQLConf;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/**
 * The door for the rule: plannings by the Python process that drives this JVM (planner.py has the other side of the requests).
 *
 * It is of the JDK's interfaces alone, so that the rule works where this unit does not.
 */
public class DriverPlanner implements Function {
  private static final String LIMIT_CONF = "spark.pydelta.driverPlanning.answerSeconds";

  private static final byte PLAN = 0;
  private static final byte WAIT = 1;
  private static final byte DONE = 0;
  private static final byte LATER = 1;
  private static final byte IN_FILE = 3;

  private volatile Function python = null;
  private volatile byte[] secret = null;

  /** python: byte[] to byte[]. secret: what requests begin with, without which Python refuses them. */
  public void offer(Function python, byte[] secret) {
    this.secret = secret;
    this.python = python;
  }

  /**
   * asked: a pickled DataSource as bytes, and the schema of a scan as JSON. A PythonDataSourceReadInfo, or a Throwable: why there
   * is none. TimeoutException where Python is silent.
   */
  public Object apply(Object asked) {
    Object[] parts = (Object[]) asked;
    try {
      return planned((byte[]) parts[0], (String) parts[1]);
    } catch (Exception error) {
      if (error instanceof InterruptedException) Thread.currentThread().interrupt();
      return error;
    }
  }

  private PythonDataSourceReadInfo planned(byte[] dataSource, String schema) throws Exception {
    SQLConf conf = SQLConf.get();
    int limitMs = (int) (1000 * Double.parseDouble(conf.getConfString(LIMIT_CONF, "15").trim()));
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    DataOutputStream out = begin(bytes, PLAN, limitMs);
    out.writeInt(conf.arrowMaxRecordsPerBatch());
    out.writeBoolean(!"false".equalsIgnoreCase(conf.getConfString("spark.sql.execution.pyspark.binaryAsBytes", "true").trim()));
    out.writeInt(dataSource.length);
    out.write(dataSource);
    out.write(schema.getBytes(StandardCharsets.UTF_8));
    DataInputStream answer = call(bytes, limitMs);
    byte kind = answer.readByte();
    while (kind == LATER) {  // however long a planning takes, Python says every now and then that it is at work
      ByteArrayOutputStream again = new ByteArrayOutputStream();
      begin(again, WAIT, limitMs).writeLong(answer.readLong());
      answer = call(again, limitMs);
      kind = answer.readByte();
    }
    if (kind == DONE) return readInfo(answer);
    String text = new String(answer.readAllBytes(), StandardCharsets.UTF_8);
    if (kind == IN_FILE) return readInfoIn(new File(text).toPath());
    throw new IllegalStateException(text);
  }

  private DataOutputStream begin(ByteArrayOutputStream bytes, byte kind, int limitMs) throws IOException {
    DataOutputStream out = new DataOutputStream(bytes);
    out.write(secret);
    out.writeByte(kind);
    out.writeInt(limitMs / 3);
    return out;
  }

  private DataInputStream call(ByteArrayOutputStream request, int limitMs) throws Exception {
    return new DataInputStream(new ByteArrayInputStream(PythonCalls.call(python, request.toByteArray(), limitMs)));
  }

  private static PythonDataSourceReadInfo readInfoIn(Path file) throws IOException {
    DataInputStream in = new DataInputStream(new BufferedInputStream(Files.newInputStream(file)));
    try {
      return readInfo(in);
    } finally {
      in.close();
      Files.deleteIfExists(file);
    }
  }

  /** As plan_data_source_read.py writes it. */
  private static PythonDataSourceReadInfo readInfo(DataInputStream in) throws IOException {
    byte[] function = bytes(in);
    List partitions = new ArrayList();
    for (int left = in.readInt(); left > 0; left--) partitions.add(bytes(in));
    return new PythonDataSourceReadInfo(function, (Seq) CollectionConverters.asScala(partitions).toList());
  }

  private static byte[] bytes(DataInputStream in) throws IOException {
    byte[] bytes = new byte[in.readInt()];
    in.readFully(bytes);
    return bytes;
  }
}
