package pydelta.driver;

import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.net.ConnectException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.RejectedExecutionException;
import java.util.function.Function;
import org.apache.spark.sql.execution.datasources.v2.python.PythonDataSourceCreationResult;
import org.apache.spark.sql.execution.datasources.v2.python.PythonDataSourceReadInfo;
import org.apache.spark.sql.execution.datasources.v2.python.PythonDataSourceV2;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;

/**
 * The door for the rule and the catalogs: tables that are opened, plannings, and the sources of streams, by the Python process that
 * drives this JVM (planner.py has the other side of the requests).
 *
 * It is of the JDK's interfaces alone, so that the rule works where this unit does not.
 */
public class DriverPlanner implements Function {
  private static final String LIMIT_CONF = "spark.pydelta.driverPlanning.answerSeconds";

  private static final ObjectMapper JSON = new ObjectMapper();

  private static final byte PLAN = 1;
  private static final byte OPEN = 2;
  private static final byte STREAM = 3;
  private static final byte READ = 4;
  private static final byte WRITE = 5;
  private static final byte COMMIT = 6;

  private volatile Function channel = null;

  /** channel: a DriverChannel. */
  public void offer(Function channel) {
    this.channel = channel;
  }

  /**
   * asked: "plan", a pickled DataSource as bytes, the schema of its rows as JSON, and whether it is read as a stream, for a
   * PythonDataSourceReadInfo; "open", the source's name, and its options as a Map, private ones too, for a PythonDataSourceV2 whose
   * DataSource is made; "stream", and what is asked of a stream's source as bytes, for the answer as bytes (StreamRunner.java and
   * stream_requests.py); "read", and the id of a scan, for its rows as an Arrow stream, or none where they are not few (reads.py);
   * "write", the source's options as a Map, private ones too, the schemas of the rows and of what tasks give back as JSON, and
   * whether it overwrites, for the write function and the writer, a byte[][]; "commit", the writer, what each task gave back as a
   * byte[][], null for nothing, and whether it is aborted, for the text of the error, empty if there is none: it is waited for
   * however long it takes, and RejectedExecutionException says that it was not begun (writes.py). Or a Throwable: why there is
   * none; TimeoutException where Python is silent.
   */
  public Object apply(Object asked) {
    Object[] parts = (Object[]) asked;
    try {
      if (parts[0].equals("open")) return opened((String) parts[1], (Map) parts[2]);
      if (parts[0].equals("stream")) return answered(STREAM, (byte[]) parts[1]);
      if (parts[0].equals("write")) {
        return write((Map) parts[1], (String) parts[2], (String) parts[3], ((Boolean) parts[4]).booleanValue());
      }
      if (parts[0].equals("commit")) {
        return committed((byte[]) parts[1], (byte[][]) parts[2], ((Boolean) parts[3]).booleanValue());
      }
      if (parts[0].equals("read")) return answered(READ, ((String) parts[1]).getBytes(StandardCharsets.UTF_8));
      return planned((byte[]) parts[1], (String) parts[2], ((Boolean) parts[3]).booleanValue());
    } catch (Exception error) {
      if (error instanceof InterruptedException) Thread.currentThread().interrupt();
      return error;
    }
  }

  private PythonDataSourceReadInfo planned(byte[] dataSource, String schema, boolean streaming) throws Exception {
    SQLConf conf = SQLConf.get();
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    DataOutputStream out = new DataOutputStream(bytes);
    out.writeByte(PLAN);
    out.writeInt(conf.arrowMaxRecordsPerBatch());
    out.writeBoolean(!"false".equalsIgnoreCase(conf.getConfString("spark.sql.execution.pyspark.binaryAsBytes", "true").trim()));
    out.writeBoolean(streaming);
    out.writeInt(dataSource.length);
    out.write(dataSource);
    out.write(schema.getBytes(StandardCharsets.UTF_8));
    return readInfo(stream(ask(bytes.toByteArray(), false)));
  }

  private PythonDataSourceV2 opened(String name, Map options) throws Exception {
    Map told = new HashMap();
    told.put("options", options);
    told.put("directory", System.getProperty("user.dir"));
    DataInputStream answer = stream(answered(OPEN, JSON.writeValueAsBytes(told)));
    byte[] made = bytes(answer);
    StructType columns = (StructType) DataType.fromJson(new String(answer.readAllBytes(), StandardCharsets.UTF_8));
    return new LoadedSource(name, new PythonDataSourceCreationResult(made, columns));
  }

  private byte[][] write(Map options, String schema, String givenBack, boolean overwrite) throws Exception {
    Map told = new HashMap();
    told.put("options", options);
    told.put("directory", System.getProperty("user.dir"));
    told.put("schema", schema);
    told.put("given back", givenBack);
    told.put("overwrite", Boolean.valueOf(overwrite));
    DataInputStream answer = stream(answered(WRITE, JSON.writeValueAsBytes(told)));
    return new byte[][] {bytes(answer), bytes(answer)};
  }

  private String committed(byte[] writer, byte[][] messages, boolean abort) throws Exception {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    DataOutputStream out = new DataOutputStream(bytes);
    out.writeByte(COMMIT);
    out.writeBoolean(abort);
    put(out, writer);
    for (int i = 0; i < messages.length; i++) put(out, messages[i]);
    try {
      return new String(ask(bytes.toByteArray(), true), StandardCharsets.UTF_8);
    } catch (ConnectException error) {
      throw new RejectedExecutionException(error);
    }
  }

  private static void put(DataOutputStream out, byte[] bytes) throws IOException {
    out.writeInt(bytes == null ? -1 : bytes.length);
    if (bytes != null) out.write(bytes);
  }

  private byte[] answered(byte kind, byte[] body) throws Exception {
    byte[] request = new byte[1 + body.length];
    request[0] = kind;
    System.arraycopy(body, 0, request, 1, body.length);
    return ask(request, false);
  }

  /** As DriverChannel.apply. */
  private byte[] ask(byte[] request, boolean isToItsEnd) throws Exception {
    int limitMs = (int) (1000 * Double.parseDouble(SQLConf.get().getConfString(LIMIT_CONF, "15").trim()));
    return (byte[]) channel.apply(new Object[] {request, Integer.valueOf(limitMs), Boolean.valueOf(isToItsEnd)});
  }

  private static DataInputStream stream(byte[] bytes) {
    return new DataInputStream(new ByteArrayInputStream(bytes));
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
