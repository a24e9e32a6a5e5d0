package pydelta.driver_planning;

import java.io.IOException;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.SynchronousQueue;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.Function;

/**
 * Calls of a function of Python's, each in a thread of its own.
 *
 * Never in the caller's: Py4J would use the connection on which Python waits for this very thread, without a limit of time, and an
 * interrupt of the user's would land in our code. A call that is never answered keeps its thread.
 */
class PythonCalls {
  /** More at once than one Python answers well are refused. */
  private static final int MOST_CALLS = 16;

  private static final ThreadPoolExecutor THREADS = new ThreadPoolExecutor(
      0, MOST_CALLS, 60, TimeUnit.SECONDS, new SynchronousQueue(), new ThreadFactory() {
        public Thread newThread(Runnable work) {
          Thread thread = new Thread(work, "pydelta-driver-planning");
          thread.setDaemon(true);
          return thread;
        }
      });

  private PythonCalls() {}

  /**
   * However long it takes, and whoever interrupts. Raises RejectedExecutionException for one call too many, which is not made then, and
   * what Py4J raises.
   */
  static byte[] callToItsEnd(Function python, byte[] request) throws Exception {
    Future answer = submit(python, request);
    boolean interrupted = false;
    try {
      while (true) {
        try {
          return (byte[]) answer.get();
        } catch (InterruptedException error) {
          interrupted = true;
        }
      }
    } catch (ExecutionException error) {
      throw causeOf(error);
    } finally {
      if (interrupted) Thread.currentThread().interrupt();
    }
  }

  /** Raises TimeoutException without an answer in time, RejectedExecutionException for one call too many, and what Py4J raises. */
  static byte[] call(Function python, byte[] request, long limitMs) throws Exception {
    Future answer = submit(python, request);
    try {
      return (byte[]) answer.get(limitMs, TimeUnit.MILLISECONDS);
    } catch (TimeoutException error) {
      throw new TimeoutException("it did not answer within " + limitMs + " ms");
    } catch (ExecutionException error) {
      throw causeOf(error);
    }
  }

  private static Future submit(final Function python, final byte[] request) {
    return THREADS.submit(new Callable() {
      public Object call() {
        return python.apply(request);
      }
    });
  }

  /** Where the connection broke Py4J tells what was sent, which has the secret in it, and credentials: nobody may log that. */
  private static Exception causeOf(ExecutionException error) {
    Throwable cause = error.getCause();
    for (Throwable each = cause; each != null; each = each.getCause()) {
      if (each.getClass().getName().equals("py4j.Py4JNetworkException")) return new IOException("the connection to Python broke");
    }
    return cause instanceof Exception ? (Exception) cause : error;
  }
}
