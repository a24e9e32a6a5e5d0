package pydelta.streams;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.InterruptedIOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Collections;
import java.util.HashMap;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeoutException;
import java.util.function.Function;
import org.apache.spark.sql.execution.python.streaming.PythonStreamingSourceRunner;
import pydelta.driver.DriverChoice;
import pydelta.rule.RuleStatus;
import pydelta.rule.Switch;
import pydelta.scan.PartitionMessages;
import pydelta.scan.ScanRequest;
import scala.Option;
import scala.Tuple2;

/**
 * Who is asked for a stream's offsets and tasks: the driver's own Python as long as it answers, and from then on the process that
 * Spark has for each stream, which raises what is wrong. That process is started when it is first asked.
 *
 * A source can be exchanged between two calls: offsets hold all that it knows, but for where a trigger ends that takes what there
 * is, which the process is told to find out once more.
 */
class StreamRunner extends PythonStreamingSourceRunner {
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final String QUESTION_KEY = "pydelta.question";  // of stream_question.py
  private static final byte[] NO_BYTES = new byte[0];

  /** Where more calls are made at once than the driver's Python takes. */
  private static final int MOST_TRIES = 40;

  private static final long PAUSE_MS = 50;

  private final ScanRequest request;
  private final RuleStatus status;
  private final String stream = UUID.randomUUID().toString();

  /** The driver's Python; null for the process. */
  private Function driver = null;

  /** Who may have a source of this stream, and is to be told of its end. */
  private Function opened = null;

  /** Why the process is asked, until it has answered once; null where the driver's Python did nothing wrong. */
  private Throwable why = null;

  /** Whom it has failed with. */
  private Function asked = null;

  private boolean isPrepared = false;

  StreamRunner(ScanRequest request, RuleStatus status) {
    super(request.source().source().createPythonFunction(request.pythonSource().dataSource()), request.schema());
    this.request = request;
    this.status = status;
  }

  public void init() {
    driver = DriverChoice.offered(request.shortName());
    if (driver != null) {
      opened = driver;
      byte[] answer = ask("open", new String[] {request.schema().json()}, request.pythonSource().dataSource());
      if (answer == null || answer.length > 0) return;
      driver = null;  // a stream that is to have a process
      opened = null;
    }
    super.init();
  }

  public String initialOffset() {
    byte[] answer = ask("initialOffset", new String[0]);
    return answer == null ? (String) answered(super.initialOffset()) : text(answer);
  }

  /** limit: in JSON, as getDefaultReadLimit gives it. */
  String latestOffset(String start, String limit) {
    return asked("latestOffset", new String[] {start, limit});
  }

  public Tuple2 partitions(String start, String end) {
    byte[] answer = ask("partitions", new String[] {start, end});
    if (answer == null) return (Tuple2) answered(super.partitions(start, end));
    ByteBuffer bytes = ByteBuffer.wrap(answer);
    byte[][] partitions = new byte[bytes.getInt()][];
    for (int i = 0; i < partitions.length; i++) {
      partitions[i] = new byte[bytes.getInt()];
      bytes.get(partitions[i]);
    }
    return new Tuple2(partitions, Option.empty());
  }

  public void commit(String end) {
    if (ask("commit", new String[] {end}) != null) return;
    super.commit(end);
    answered(null);
  }

  public void prepareForTriggerAvailableNow() {
    asked("prepareForTriggerAvailableNow", new String[0]);
    isPrepared = true;
  }

  public String getDefaultReadLimit() {
    return asked("getDefaultReadLimit", new String[0]);
  }

  /** Null where nothing was read yet. */
  public String reportLatestOffset() {
    String place = asked("reportLatestOffset", new String[0]);
    return place.isEmpty() ? null : place;
  }

  /** A call that processes of Spark 4.1 do not know. */
  private String asked(String call, String[] arguments) {
    byte[] answer = ask(call, arguments);
    return answer == null ? (String) answered(askProcess(call, arguments)) : text(answer);
  }

  /** The process is asked as if for the tasks of a batch, which it knows in each version of Spark, and answers in the only one. */
  private String askProcess(String call, String[] arguments) {
    Map question = new HashMap();
    question.put("call", call);
    question.put("arguments", arguments);
    byte[][] partitions = super.partitions(json(Collections.singletonMap(QUESTION_KEY, question)), "{}")._1();
    return new PartitionMessages(partitions).text(0, "answer");
  }

  public void stop() {
    if (opened != null) DriverChoice.answer(opened, asking("close", new String[0], NO_BYTES));
    opened = null;
    super.stop();
  }

  /** In a thread of its own: this one is interrupted. */
  private void closeLater() {
    final Function told = opened;
    opened = null;
    Thread thread = new Thread("pydelta-stream-close") {
      public void run() {
        DriverChoice.answer(told, asking("close", new String[0], NO_BYTES));
      }
    };
    thread.setDaemon(true);
    thread.start();
  }

  private byte[] ask(String call, String[] arguments) {
    return ask(call, arguments, NO_BYTES);
  }

  /** The answer of the driver's Python; null where the process is to be asked, which runs then. */
  synchronized byte[] ask(String call, String[] arguments, byte[] source) {
    if (driver == null) return null;
    if (driver != DriverChoice.offered()) {  // it was given up
      goOnInProcess();
      return null;
    }
    Object[] asking = asking(call, arguments, source);
    Object answer = DriverChoice.answer(driver, asking);
    for (int tries = 0; answer instanceof RejectedExecutionException && tries < MOST_TRIES; tries++) {
      answer = pause() ? DriverChoice.answer(driver, asking) : new InterruptedException();
    }
    if (!(answer instanceof byte[])) {
      leave((Throwable) answer);
      return null;
    }
    DriverChoice.succeeded();
    if (call.equals("partitions")) status.used(Switch.DRIVER_PLANNING);
    return (byte[]) answer;
  }

  /** What stream_requests.py reads: a text of JSON with its length before it, and the pickled DataSource. */
  private Object[] asking(String call, String[] arguments, byte[] source) {
    Map asked = new HashMap();
    asked.put("stream", stream);
    asked.put("call", call);
    asked.put("arguments", arguments);
    byte[] head = json(asked).getBytes(StandardCharsets.UTF_8);
    ByteBuffer bytes = ByteBuffer.allocate(4 + head.length + source.length);
    bytes.putInt(head.length).put(head).put(source);
    return new Object[] {"stream", bytes.array()};
  }

  private static String json(Map values) {
    try {
      return JSON.writeValueAsString(values);
    } catch (JsonProcessingException error) {
      throw new UncheckedIOException(error);
    }
  }

  /** False where the thread is interrupted. */
  private static boolean pause() {
    try {
      Thread.sleep(PAUSE_MS);
      return true;
    } catch (InterruptedException error) {
      Thread.currentThread().interrupt();
      return false;
    }
  }

  private void leave(Throwable error) {
    if (error instanceof InterruptedException || Thread.currentThread().isInterrupted()) {  // the query is stopped
      if (opened != null) closeLater();
      throw new UncheckedIOException((InterruptedIOException) new InterruptedIOException().initCause(error));
    }
    DriverChoice.silent(driver, error);
    if (error instanceof TimeoutException) opened = null;
    why = error;
    asked = driver;
    goOnInProcess();
  }

  private void goOnInProcess() {
    driver = null;
    super.init();
    if (isPrepared) askProcess("prepareForTriggerAvailableNow", new String[0]);
  }

  /** The process has done what was asked of it. */
  private Object answered(Object answer) {
    if (why != null) DriverChoice.failed(asked, why, status);
    why = null;
    return answer;
  }

  private static String text(byte[] answer) {
    return new String(answer, StandardCharsets.UTF_8);
  }
}
