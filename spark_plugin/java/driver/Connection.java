package pydelta.driver;

import java.io.EOFException;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.SocketAddress;
import java.net.StandardProtocolFamily;
import java.net.StandardSocketOptions;
import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;
import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import java.security.SecureRandom;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

/** A connection whose two ends have proved to each other that they know the secret (frames.py describes the bytes). */
class Connection {
  private static final int PROOF_BYTES = 32;
  private static final int MAX_ANSWER_BYTES = 1 << 30;
  /** Java copies the bytes of one read or write to memory outside of the heap, and each thread keeps that memory. */
  private static final int MAX_BYTES_AT_A_TIME = 1 << 20;
  private static final byte CLIENT = 'c';
  private static final byte SERVER = 's';
  private static final SecureRandom RANDOM = new SecureRandom();

  private final SocketChannel channel;

  private Connection(SocketChannel channel) {
    this.channel = channel;
  }

  /** Raises EOFException if the other end takes no more connections now, and IOException if it does not know the secret. */
  static Connection open(SocketAddress address, byte[] secret) throws IOException {
    boolean isUnix = !(address instanceof InetSocketAddress);
    var channel = isUnix ? SocketChannel.open(StandardProtocolFamily.UNIX) : SocketChannel.open();
    var connection = new Connection(channel);
    try {
      channel.connect(address);
      if (!isUnix) channel.setOption(StandardSocketOptions.TCP_NODELAY, Boolean.TRUE);
      connection.prove(secret);
      return connection;
    } catch (IOException error) {
      connection.close();
      throw error;
    }
  }

  private void prove(byte[] secret) throws IOException {
    byte[] theirs = read(PROOF_BYTES).array();
    byte[] ours = new byte[PROOF_BYTES];
    RANDOM.nextBytes(ours);
    write(ByteBuffer.allocate(2 * PROOF_BYTES).put(ours).put(proof(secret, CLIENT, theirs, ours)).flip());
    byte[] proof = read(PROOF_BYTES).array();
    if (!MessageDigest.isEqual(proof, proof(secret, SERVER, theirs, ours))) {
      throw new IOException("the other end does not know the secret of this application");
    }
  }

  private static byte[] proof(byte[] secret, byte side, byte[] serverNonce, byte[] clientNonce) throws IOException {
    try {
      Mac mac = Mac.getInstance("HmacSHA256");
      mac.init(new SecretKeySpec(secret, "HmacSHA256"));
      mac.update(side);
      mac.update(serverNonce);
      return mac.doFinal(clientNonce);
    } catch (GeneralSecurityException error) {
      throw new IOException(error);
    }
  }

  void send(ByteBuffer request, int patienceMs) throws IOException {
    int length = request.remaining();
    boolean isSmall = length < MAX_BYTES_AT_A_TIME;
    ByteBuffer head = ByteBuffer.allocate(isSmall ? 8 + length : 8).putInt(4 + length).putInt(patienceMs);
    if (isSmall) head.put(request);
    write(head.flip());
    write(request);
  }

  /** One frame: its status and its body. */
  ByteBuffer receive() throws IOException {
    int length = read(4).getInt();
    if (length < 1 || length > MAX_ANSWER_BYTES) throw new IOException("a frame of " + length + " bytes");
    return read(length);
  }

  /** Whether Python has neither ended this connection nor sent unrequested bytes. No call uses the connection. */
  boolean isAlive() {
    try {
      channel.configureBlocking(false);
      int count = channel.read(ByteBuffer.allocate(1));
      channel.configureBlocking(true);
      return count == 0;
    } catch (IOException error) {
      return false;
    }
  }

  void close() {
    try {
      channel.close();
    } catch (IOException error) {
      // nobody uses the connection any more
    }
  }

  private ByteBuffer read(int length) throws IOException {
    ByteBuffer bytes = ByteBuffer.allocate(length);
    while (bytes.position() < length) {
      bytes.limit(Math.min(length, bytes.position() + MAX_BYTES_AT_A_TIME));
      if (channel.read(bytes) < 0) throw new EOFException("the connection to the driver's Python broke");
    }
    return bytes.flip();
  }

  private void write(ByteBuffer bytes) throws IOException {
    int end = bytes.limit();
    while (bytes.position() < end) {
      bytes.limit(Math.min(end, bytes.position() + MAX_BYTES_AT_A_TIME));
      channel.write(bytes);
    }
  }
}
