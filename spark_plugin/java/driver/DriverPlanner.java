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
import java.util.Map;
import java.util.concurrent.RejectedExecutionException;
import org.apache.spark.sql.execution.datasources.v2.python.PythonDataSourceCreationResult;
import org.apache.spark.sql.execution.datasources.v2.python.PythonDataSourceReadInfo;
import org.apache.spark.sql.execution.datasources.v2.python.PythonDataSourceV2;
import org.apache.spark.sql.execution.datasources.v2.python.PythonDataSourceWriteInfo;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;
import scala.jdk.javaapi.CollectionConverters;

/**
 * The requests that the rule, the catalogs and streams make of the Python process that drives this JVM (planner.py answers them).
 * The failure of an answer is a TimeoutException if Python is silent, and a RejectedExecutionException if Python has not begun.
 */
public class DriverPlanner {
  private static final String LIMIT_CONF = "spark.pydelta.driverPlanning.answerSeconds";

  private static final ObjectMapper JSON = new ObjectMapper();

  private static final byte PLAN = 1;
  private static final byte OPEN = 2;
  private static final byte STREAM = 3;
  private static final byte READ = 4;
  private static final byte WRITE = 5;
  private static final byte COMMIT = 6;

  private volatile DriverChannel channel = null;

  public void offer(DriverChannel channel) {
    this.channel = channel;
  }

  /** Plans a scan. dataSource: pickled. schema: of the rows, as JSON. */
  Answer<PythonDataSourceReadInfo> plan(byte[] dataSource, String schema, boolean isStream) {
    return Answer.of(() -> planned(dataSource, schema, isStream));
  }

  /** Opens a table. name: of the source. options: of the source, private ones too. */
  Answer<PythonDataSourceV2> open(String name, Map<String, String> options) {
    return Answer.of(() -> opened(name, options));
  }

  /** Asks the source of a stream, as StreamRunner.java and stream_requests.py do. */
  public Answer<byte[]> askStream(byte[] question) {
    return Answer.of(() -> answered(STREAM, question));
  }

  /** Reads the rows of a planned scan, as an Arrow stream; no bytes if they are not few (reads.py). */
  Answer<byte[]> read(String scanId) {
    return Answer.of(() -> answered(READ, scanId.getBytes(StandardCharsets.UTF_8)));
  }

  /** Plans a write. options: as in open. schema: of the rows, as JSON. givenBack: the schema of what tasks return, as JSON. */
  Answer<PythonDataSourceWriteInfo> write(Map<String, String> options, String schema, String givenBack, boolean overwrite) {
    return Answer.of(() -> plannedWrite(options, schema, givenBack, overwrite));
  }

  /**
   * Commits or aborts a write, and waits however long it takes (writes.py). Returns the text of the error, empty if there is
   * none.
   *
   * messages: what each task returned; null for nothing.
   */
  Answer<String> commit(byte[] writer, byte[][] messages, boolean abort) {
    return Answer.of(() -> committed(writer, messages, abort));
  }

  private PythonDataSourceReadInfo planned(byte[] dataSource, String schema, boolean isStream) throws Exception {
    SQLConf conf = SQLConf.get();
    var bytes = new ByteArrayOutputStream();
    var out = new DataOutputStream(bytes);
    out.writeByte(PLAN);
    out.writeInt(conf.arrowMaxRecordsPerBatch());
    out.writeBoolean(!"false".equalsIgnoreCase(conf.getConfString("spark.sql.execution.pyspark.binaryAsBytes", "true").trim()));
    out.writeBoolean(isStream);
    put(out, dataSource);
    out.write(schema.getBytes(StandardCharsets.UTF_8));
    return readInfo(stream(ask(bytes.toByteArray(), false)));
  }

  private PythonDataSourceV2 opened(String name, Map<String, String> options) throws Exception {
    var request = Map.of("options", options, "directory", System.getProperty("user.dir"));
    DataInputStream answer = stream(answered(OPEN, JSON.writeValueAsBytes(request)));
    byte[] made = bytes(answer);
    var columns = (StructType) DataType.fromJson(new String(answer.readAllBytes(), StandardCharsets.UTF_8));
    return new LoadedSource(name, new PythonDataSourceCreationResult(made, columns));
  }

  private PythonDataSourceWriteInfo plannedWrite(Map<String, String> options, String schema, String givenBack, boolean overwrite)
      throws Exception {
    var request = Map.of(
        "options", options, "directory", System.getProperty("user.dir"), "schema", schema, "given back", givenBack,
        "overwrite", overwrite);
    DataInputStream answer = stream(answered(WRITE, JSON.writeValueAsBytes(request)));
    return new PythonDataSourceWriteInfo(bytes(answer), bytes(answer));
  }

  private String committed(byte[] writer, byte[][] messages, boolean abort) throws Exception {
    var bytes = new ByteArrayOutputStream();
    var out = new DataOutputStream(bytes);
    out.writeByte(COMMIT);
    out.writeBoolean(abort);
    put(out, writer);
    for (byte[] message : messages) put(out, message);
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

  /** As DriverChannel.ask. */
  private byte[] ask(byte[] request, boolean isToItsEnd) throws Exception {
    return channel.ask(request, (int) (1000 * answerSeconds()), isToItsEnd);
  }

  /** Raises if the setting is no number of seconds above 0. */
  public static double answerSeconds() {
    String text = SQLConf.get().getConfString(LIMIT_CONF, "15").trim();
    double seconds;
    try {
      seconds = Double.parseDouble(text);
    } catch (NumberFormatException error) {
      seconds = Double.NaN;
    }
    if (seconds > 0) return seconds;
    throw new IllegalArgumentException(LIMIT_CONF + " is '" + text + "'. It must be a number of seconds above 0.");
  }

  private static DataInputStream stream(byte[] bytes) {
    return new DataInputStream(new ByteArrayInputStream(bytes));
  }

  /** As plan_data_source_read.py writes it. */
  private static PythonDataSourceReadInfo readInfo(DataInputStream in) throws IOException {
    byte[] function = bytes(in);
    var partitions = new ArrayList<byte[]>();
    for (int left = in.readInt(); left > 0; left--) partitions.add(bytes(in));
    return new PythonDataSourceReadInfo(function, CollectionConverters.asScala(partitions).toList());
  }

  private static byte[] bytes(DataInputStream in) throws IOException {
    byte[] bytes = new byte[in.readInt()];
    in.readFully(bytes);
    return bytes;
  }
}
