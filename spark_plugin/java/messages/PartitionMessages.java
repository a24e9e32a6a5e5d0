package pydelta.messages;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Map;
import net.razorvine.pickle.Unpickler;

/**
 * What the source says in the partitions of a scan or a batch, as partition_messages.py pickles it. The plan is in the first one.
 */
public class PartitionMessages {
  private static final String MODULE = "spark_plugin.pruning.partition_messages";

  /** The name of the first function that the pickle calls comes after its protocol and frame, which have a fixed length. */
  private static final int START = 11;

  private static final byte[] CALL = ("\u008c" + (char) MODULE.length() + MODULE).getBytes(StandardCharsets.ISO_8859_1);

  static {
    Unpickler.registerConstructor(MODULE, "restored_partition", arguments -> arguments[0]);
  }

  private final byte[][] partitions;
  private ReadPlan plan = null;

  /** partitions: pickled. */
  public PartitionMessages(byte[][] partitions) {
    this.partitions = partitions;
  }

  /** The plan in the first partition. */
  public synchronized ReadPlan readPlan() {
    if (plan == null) plan = ReadPlan.parse(text(0, "plan"));
    return plan;
  }

  /** Null if there is none. */
  public String text(int partition, String name) {
    return (String) message(partition, name);
  }

  /** Null if there are none. */
  public byte[] bytes(int partition, String name) {
    return (byte[]) message(partition, name);
  }

  private Object message(int partition, String name) {
    if (partitions.length <= partition || !hasMessages(partitions[partition])) return null;
    try {
      return ((Map<?, ?>) new Unpickler().loads(partitions[partition])).get(name);
    } catch (IOException error) {
      throw new IllegalStateException("the messages of a partition cannot be read", error);
    }
  }

  /** Only the partitions of partition_messages.py have messages. Others may hold objects that only Python can unpickle. */
  private static boolean hasMessages(byte[] pickled) {
    int end = START + CALL.length;
    return pickled.length >= end && Arrays.equals(pickled, START, end, CALL, 0, CALL.length);
  }
}
