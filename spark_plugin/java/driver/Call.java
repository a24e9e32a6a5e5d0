package pydelta.driver;

import java.io.IOException;
import java.net.ConnectException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.Callable;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.atomic.AtomicInteger;

/** One request and its answer, on a connection that no other call uses at the same time. */
class Call implements Callable<byte[]> {
  private static final byte DONE = 0;
  private static final byte WORKING = 1;
  private static final byte NOT_BEGUN = 3;

  private static final int WAITING = 0;
  private static final int SENT = 1;
  private static final int GIVEN_UP = 2;
  private static final int ENDED = 3;

  private final DriverChannel channel;
  private final byte[] request;
  private final int patienceMs;
  private final AtomicInteger state = new AtomicInteger(WAITING);
  private volatile long lastSign = System.nanoTime();
  private volatile Connection connection = null;

  Call(DriverChannel channel, byte[] request, int patienceMs) {
    this.channel = channel;
    this.request = request;
    this.patienceMs = patienceMs;
  }

  boolean isSilent(int limitMs) {
    return System.nanoTime() - lastSign >= limitMs * 1000000L;
  }

  /**
   * Ends the call, since nobody waits for the answer any more. Does nothing to a call that has ended: another call may use its
   * connection by now. onlyUnsent: if the request was sent, do nothing and return false.
   */
  boolean giveUp(boolean onlyUnsent) {
    boolean isUnsent = state.compareAndSet(WAITING, GIVEN_UP);
    if (!isUnsent && onlyUnsent) return false;
    if (isUnsent || state.compareAndSet(SENT, GIVEN_UP)) {
      Connection used = connection;
      if (used != null) used.close();
    }
    return true;
  }

  public byte[] call() throws Exception {
    Connection used = channel.connection();
    connection = used;
    boolean isClean = false;
    try {
      if (!state.compareAndSet(WAITING, SENT)) throw new ConnectException("nobody waits any more");
      used.send(ByteBuffer.wrap(request), patienceMs);
      ByteBuffer frame = used.receive();
      while (frame.get(0) == WORKING) {
        lastSign = System.nanoTime();
        frame = used.receive();
      }
      isClean = true;
      return answered(frame);
    } finally {
      if (isClean && state.compareAndSet(SENT, ENDED)) channel.release(used);
      else used.close();
    }
  }

  private static byte[] answered(ByteBuffer frame) throws IOException {
    byte status = frame.get();
    byte[] body = new byte[frame.remaining()];
    frame.get(body);
    if (status == DONE) return body;
    String why = new String(body, StandardCharsets.UTF_8);
    throw status == NOT_BEGUN ? new RejectedExecutionException(why) : new IllegalStateException(why);
  }
}
