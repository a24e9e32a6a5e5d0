package pydelta.driver_channel;

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
  private static final byte CLIENT = 'c';
  private static final byte SERVER = 's';
  private static final SecureRandom RANDOM = new SecureRandom();

  private final SocketChannel channel;

  private Connection(SocketChannel channel) {
    this.channel = channel;
  }

  /** Raises IOException if the other end does not know the secret. */
  static Connection open(SocketAddress address, byte[] secret) throws IOException {
    boolean isUnix = !(address instanceof InetSocketAddress);
    SocketChannel channel = isUnix ? SocketChannel.open(StandardProtocolFamily.UNIX) : SocketChannel.open();
    Connection connection = new Connection(channel);
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
    write(new ByteBuffer[] {ByteBuffer.wrap(ours), ByteBuffer.wrap(proof(secret, CLIENT, theirs, ours))});
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
    ByteBuffer head = ByteBuffer.allocate(8);
    head.putInt(4 + request.remaining()).putInt(patienceMs).flip();
    write(new ByteBuffer[] {head, request});
  }

  /** One frame: its status and its body. */
  ByteBuffer receive() throws IOException {
    int length = read(4).getInt();
    if (length < 1 || length > MAX_ANSWER_BYTES) throw new IOException("a frame of " + length + " bytes");
    return read(length);
  }

  /** Whether Python has neither ended this connection nor sent what nobody asked for. No call uses it. */
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
      // it is given up either way
    }
  }

  private ByteBuffer read(int length) throws IOException {
    ByteBuffer bytes = ByteBuffer.allocate(length);
    while (bytes.hasRemaining()) {
      if (channel.read(bytes) < 0) throw new EOFException("the connection to the driver's Python broke");
    }
    return bytes.flip();
  }

  private void write(ByteBuffer[] parts) throws IOException {
    ByteBuffer last = parts[parts.length - 1];
    while (last.hasRemaining()) channel.write(parts);
  }
}
