package pydelta.streams;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.InterruptedIOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeoutException;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.execution.python.streaming.PythonStreamingSourceRunner;
import pydelta.driver.Answer;
import pydelta.driver.DriverChoice;
import pydelta.driver.DriverPlanner;
import pydelta.rule.RuleStatus;
import pydelta.rule.Switch;
import pydelta.messages.PartitionMessages;
import pydelta.scan.ScanRequest;
import scala.Option;
import scala.Tuple2;

/**
 * Asks for a stream's offsets and tasks: the driver's own Python as long as it answers, and after that the process that Spark has
 * for each stream, which raises what is wrong. That process starts when it is first asked.
 *
 * Another source can take over between two calls, since offsets hold all that a source knows. The exception is where a trigger
 * ends that reads what is available: the process has to find this out again.
 */
class StreamRunner extends PythonStreamingSourceRunner {
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final String QUESTION_KEY = "pydelta.question";  // of stream_question.py
  private static final byte[] NO_BYTES = new byte[0];

  /** The number of tries if the driver's Python takes no more calls at the same time. */
  private static final int MOST_TRIES = 40;

  private static final long PAUSE_MS = 50;

  private final ScanRequest request;
  private final RuleStatus status;
  private final String stream = UUID.randomUUID().toString();

  /** The driver's Python; null if the process is asked. */
  private DriverPlanner driver = null;

  /** The planner that may have a source of this stream, and has to close it. */
  private DriverPlanner opened = null;

  /** Why the process is asked, until it has answered once; null if the driver's Python did nothing wrong. */
  private Throwable failure = null;

  private DriverPlanner failedDriver = null;

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
      byte[] answer = ask(question("open", List.of(request.schema().json()), request.pythonSource().dataSource()));
      if (answer == null || answer.length > 0) return;
      driver = null;  // the stream needs a process
      opened = null;
    }
    super.init();
  }

  public String initialOffset() {
    byte[] answer = ask("initialOffset");
    return answer == null ? answered(super.initialOffset()) : text(answer);
  }

  /** limit: in JSON, as getDefaultReadLimit gives it. */
  String latestOffset(String start, String limit) {
    return askDriverOrProcess("latestOffset", start, limit);
  }

  public Tuple2<byte[][], Option<scala.collection.Iterator<InternalRow>>> partitions(String start, String end) {
    byte[] answer = ask("partitions", start, end);
    if (answer == null) return answered(super.partitions(start, end));
    status.used(Switch.DRIVER_PLANNING);
    ByteBuffer bytes = ByteBuffer.wrap(answer);
    byte[][] partitions = new byte[bytes.getInt()][];
    for (int i = 0; i < partitions.length; i++) {
      partitions[i] = new byte[bytes.getInt()];
      bytes.get(partitions[i]);
    }
    return new Tuple2<>(partitions, Option.empty());
  }

  public void commit(String end) {
    if (ask("commit", end) != null) return;
    super.commit(end);
    answered(null);
  }

  public void prepareForTriggerAvailableNow() {
    askDriverOrProcess("prepareForTriggerAvailableNow");
    isPrepared = true;
  }

  public String getDefaultReadLimit() {
    return askDriverOrProcess("getDefaultReadLimit");
  }

  /** Null if nothing was read yet. */
  public String reportLatestOffset() {
    String place = askDriverOrProcess("reportLatestOffset");
    return place.isEmpty() ? null : place;
  }

  /** Makes a call that processes of Spark 4.1 do not know. */
  private String askDriverOrProcess(String call, String... arguments) {
    byte[] answer = ask(call, arguments);
    return answer == null ? answered(askProcess(call, arguments)) : text(answer);
  }

  /** Asks for the tasks of a batch, a call that the process of each version of Spark knows. The only task has the answer. */
  private String askProcess(String call, String... arguments) {
    var question = Map.of(QUESTION_KEY, Map.of("call", call, "arguments", arguments));
    byte[][] partitions = super.partitions(json(question), "{}")._1();
    return new PartitionMessages(partitions).text(0, "answer");
  }

  public void stop() {
    if (opened != null) opened.askStream(question("close", List.of(), NO_BYTES));
    opened = null;
    super.stop();
  }

  /** Closes the source in another thread, since this one is interrupted. */
  private void closeLater() {
    DriverPlanner planner = opened;
    opened = null;
    var thread = new Thread(() -> planner.askStream(question("close", List.of(), NO_BYTES)), "pydelta-stream-close");
    thread.setDaemon(true);
    thread.start();
  }

  private byte[] ask(String call, String... arguments) {
    return ask(question(call, List.of(arguments), NO_BYTES));
  }

  /**
   * The answer of the driver's Python. Null if there is none: from then on the process answers, which is started here. A question
   * that Python has not begun is repeated.
   */
  private synchronized byte[] ask(byte[] question) {
    if (driver == null) return null;
    if (driver != DriverChoice.offered()) {  // it was given up or replaced
      goOnInProcess();
      return null;
    }
    Answer<byte[]> answer = driver.askStream(question);
    for (int tries = 0; answer.failure() instanceof RejectedExecutionException && tries < MOST_TRIES; tries++) {
      answer = pause() ? driver.askStream(question) : Answer.failed(new InterruptedException());
    }
    if (answer.isFailed()) leave(answer.failure());
    else DriverChoice.noteSuccess();
    return answer.value();
  }

  /** What stream_requests.py reads: a text of JSON with its length before it, and the pickled DataSource. */
  private byte[] question(String call, List<String> arguments, byte[] source) {
    byte[] head = json(Map.of("stream", stream, "call", call, "arguments", arguments)).getBytes(StandardCharsets.UTF_8);
    return ByteBuffer.allocate(4 + head.length + source.length).putInt(head.length).put(head).put(source).array();
  }

  private static String json(Map<String, ?> values) {
    try {
      return JSON.writeValueAsString(values);
    } catch (JsonProcessingException error) {
      throw new UncheckedIOException(error);
    }
  }

  /** Returns false if the thread is interrupted. */
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
    DriverChoice.stopIfSilent(driver, error);
    if (error instanceof TimeoutException) opened = null;
    failure = error;
    failedDriver = driver;
    goOnInProcess();
  }

  private void goOnInProcess() {
    driver = null;
    super.init();
    if (isPrepared) askProcess("prepareForTriggerAvailableNow");
  }

  /** Notes that the process could do what the driver's Python could not. */
  private <T> T answered(T answer) {
    if (failure != null) DriverChoice.noteFailure(failedDriver, failure, status);
    failure = null;
    return answer;
  }

  private static String text(byte[] answer) {
    return new String(answer, StandardCharsets.UTF_8);
  }
}
