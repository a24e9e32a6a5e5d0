package pydelta.driver;

import java.io.EOFException;
import java.io.IOException;
import java.net.ConnectException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.SocketAddress;
import java.net.UnixDomainSocketAddress;
import java.nio.ByteBuffer;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Future;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.SynchronousQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.apache.spark.SparkContext;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerApplicationEnd;

/**
 * Sends all requests of this JVM to the Python process that drives it (server.py answers them).
 *
 * Each call uses one connection and runs in its own thread, so an interrupt of the caller never reaches the connection.
 */
public class DriverChannel {
  /**
   * The kind of a request that runs a statement or a procedure. It may take hours, so it does not count as a call of planning.
   */
  private static final byte STATEMENT = 7;
  private static final byte HOLD = 127;
  private static final int MAX_CALLS = 16;
  private static final int MAX_STATEMENTS = 64;
  private static final int MAX_REQUEST_BYTES = 1 << 26;
  private static final int CONNECTING_MS = 3000;
  private static final int PAUSE_MS = 20;

  private final ExecutorService calls = threads(MAX_CALLS, "pydelta-driver-call");
  private final ExecutorService statements = threads(MAX_STATEMENTS, "pydelta-driver-statement");
  private final Deque<Connection> idle = new ArrayDeque<>();
  private SocketAddress address = null;
  private byte[] secret = null;
  private Connection held = null;
  private boolean isClosed = false;

  /**
   * Connects to Python and stays connected until the application ends. Python stops listening when this connection ends.
   *
   * path: of a Unix domain socket, or null. port: on the loopback interface, used if path is null. Raises IOException if Python
   * does not prove within limitMs that it knows the secret.
   */
  public void open(String path, int port, byte[] secret, SparkContext context, int limitMs) throws Exception {
    boolean isUnix = path != null;
    this.address = isUnix ? UnixDomainSocketAddress.of(path) : new InetSocketAddress(InetAddress.getLoopbackAddress(), port);
    this.secret = secret;
    this.held = waited(calls.submit(this::opened), limitMs);
    context.addSparkListener(new Ending());
  }

  /**
   * Sends a request and waits for the answer.
   *
   * request: its kind comes first. limitMs: Python must give a sign of life within this time. isToItsEnd: the call waits however
   * long Python is silent after the request was sent, and whoever interrupts.
   *
   * Raises ConnectException if the request was not sent, RejectedExecutionException if Python has not begun, TimeoutException if
   * Python is silent, InterruptedException, and IOException if the connection broke or Python failed. If a call waits to its end,
   * all but the first two mean that the work may have been done.
   */
  public byte[] ask(byte[] request, int limitMs, boolean isToItsEnd) throws Exception {
    if (request.length > MAX_REQUEST_BYTES) {
      throw new RejectedExecutionException(
          "the request has " + request.length + " bytes, and at most " + MAX_REQUEST_BYTES + " are sent");
    }
    var call = new Call(this, request, limitMs / 3);
    Future<byte[]> answer = (request[0] == STATEMENT ? statements : calls).submit(call);
    boolean isInterrupted = false;
    try {
      while (true) {
        try {
          return answer.get(limitMs, TimeUnit.MILLISECONDS);
        } catch (InterruptedException error) {
          if (!isToItsEnd) {
            call.giveUp(false);
            answer.cancel(true);
            throw error;
          }
          isInterrupted = true;
        } catch (TimeoutException error) {
          if (call.isSilent(limitMs) && call.giveUp(isToItsEnd)) {
            answer.cancel(true);
            String silence = "it did not answer within " + limitMs + " ms";
            throw isToItsEnd ? new ConnectException(silence) : new TimeoutException(silence);
          }
        }
      }
    } catch (ExecutionException error) {
      throw causeOf(error);
    } finally {
      if (isInterrupted) Thread.currentThread().interrupt();
    }
  }

  private static <T> T waited(Future<T> answer, int limitMs) throws Exception {
    try {
      return answer.get(limitMs, TimeUnit.MILLISECONDS);
    } catch (ExecutionException error) {
      throw causeOf(error);
    } finally {
      answer.cancel(true);
    }
  }

  private static Exception causeOf(ExecutionException error) {
    return error.getCause() instanceof Exception cause ? cause : error;
  }

  /** A connection that no call uses, or a new one. Raises ConnectException. */
  Connection connection() throws ConnectException {
    while (true) {
      Connection known;
      synchronized (this) {
        if (isClosed) throw new ConnectException("the channel is closed");
        known = idle.pollFirst();
      }
      if (known == null) break;
      if (known.isAlive()) return known;
      known.close();
    }
    return connected();
  }

  /** Connects, and tries again for a while: Python ends a new connection while many others have not proved themselves yet. */
  private Connection connected() throws ConnectException {
    long started = System.nanoTime();
    while (true) {
      try {
        return Connection.open(address, secret);
      } catch (EOFException error) {
        if (System.nanoTime() - started >= CONNECTING_MS * 1000000L || !pause()) throw notReached(error);
      } catch (IOException error) {
        throw notReached(error);
      }
    }
  }

  /** Returns false if the thread is interrupted. */
  private static boolean pause() {
    try {
      Thread.sleep(PAUSE_MS);
      return true;
    } catch (InterruptedException error) {
      return false;
    }
  }

  private static ConnectException notReached(IOException error) {
    return (ConnectException) new ConnectException("the driver's Python is not reached: " + error).initCause(error);
  }

  synchronized void release(Connection connection) {
    if (isClosed) connection.close();
    else idle.addFirst(connection);
  }

  /** Ends the connections that no call uses. The others end with their calls. */
  public synchronized void close() {
    isClosed = true;
    idle.forEach(Connection::close);
    idle.clear();
    if (held != null) held.close();
    calls.shutdown();
    statements.shutdown();
  }

  private static ExecutorService threads(int most, String name) {
    return new ThreadPoolExecutor(0, most, 60, TimeUnit.SECONDS, new SynchronousQueue<>(), work -> {
      var thread = new Thread(work, name);
      thread.setDaemon(true);
      return thread;
    });
  }

  /** Opens the connection that lasts as long as the application. */
  private Connection opened() throws Exception {
    Connection connection = connection();
    connection.send(ByteBuffer.wrap(new byte[] {HOLD}), 0);
    return connection;
  }

  private class Ending extends SparkListener {
    public void onApplicationEnd(SparkListenerApplicationEnd end) {
      close();
    }
  }
}
