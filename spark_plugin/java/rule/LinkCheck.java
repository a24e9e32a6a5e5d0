package pydelta.rule;

import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.DataInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.lang.invoke.MethodType;
import java.lang.reflect.Constructor;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.net.URL;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.jar.JarEntry;
import java.util.jar.JarFile;

/**
 * Whether the classes of this jar fit a Spark that they were not compiled for: each class loads, each class, method and field
 * that they name exists, and no class lacks a method that Spark has added to an interface.
 */
public class LinkCheck {
  private static final String OURS = "pydelta/";
  private static final int MOST_PROBLEMS = 3;

  private final ClassLoader loader = LinkCheck.class.getClassLoader();
  private final Map<String, Set<String>> members = new HashMap<>();
  private final Map<String, List<String>> problems = new TreeMap<>();

  /** As JSON: the packages whose classes do not fit, such as "readers", each with some reasons. Empty if all classes fit. */
  public String problems() throws Exception {
    URL jar = LinkCheck.class.getProtectionDomain().getCodeSource().getLocation();
    try (JarFile file = new JarFile(Path.of(jar.toURI()).toFile())) {
      for (JarEntry entry : Collections.list(file.entries())) {
        if (!entry.getName().startsWith(OURS) || !entry.getName().endsWith(".class")) continue;
        try (InputStream stream = file.getInputStream(entry)) {
          check(entry.getName(), Constants.read(new DataInputStream(stream)));
        }
      }
    }
    return new ObjectMapper().writeValueAsString(problems);
  }

  private void check(String path, List<Constants.Member> named) {
    String name = path.substring(0, path.length() - ".class".length());
    String part = name.substring(OURS.length(), name.lastIndexOf('/'));
    try {
      Class<?> type = Class.forName(name.replace('/', '.'), false, loader);
      membersOf(type);
      if (!Modifier.isAbstract(type.getModifiers())) {
        for (Method method : type.getMethods()) {
          if (Modifier.isAbstract(method.getModifiers())) note(part, type.getName() + " lacks " + method);
        }
      }
    } catch (ClassNotFoundException | LinkageError | TypeNotPresentException error) {
      note(part, name + ": " + error);
      return;
    }
    for (Constants.Member member : named) {
      if (member.owner().startsWith("java/") || member.owner().startsWith("[")) continue;
      try {
        Class<?> owner = Class.forName(member.owner().replace('/', '.'), false, loader);
        if (!has(owner, member.name() + member.descriptor())) note(part, name + " needs " + member);
      } catch (ClassNotFoundException | LinkageError | TypeNotPresentException error) {
        note(part, name + " needs " + member + ": " + error);
      }
    }
  }

  private void note(String part, String problem) {
    List<String> known = problems.computeIfAbsent(part, each -> new ArrayList<>());
    if (known.size() < MOST_PROBLEMS) known.add(problem);
  }

  /** Whether a class, or one that it extends or implements, has a member: its name and descriptor. */
  private boolean has(Class<?> type, String member) {
    if (membersOf(type).contains(member)) return true;
    if (type.isInterface() && membersOf(Object.class).contains(member)) return true;
    if (member.startsWith("<init>")) return false;
    if (type.getSuperclass() != null && has(type.getSuperclass(), member)) return true;
    for (Class<?> each : type.getInterfaces()) {
      if (has(each, member)) return true;
    }
    return false;
  }

  private Set<String> membersOf(Class<?> type) {
    return members.computeIfAbsent(type.getName(), each -> {
      Set<String> names = new HashSet<>();
      for (Field field : type.getDeclaredFields()) names.add(field.getName() + field.getType().descriptorString());
      for (Method method : type.getDeclaredMethods()) {
        names.add(method.getName() + descriptor(method.getReturnType(), method.getParameterTypes()));
      }
      for (Constructor<?> constructor : type.getDeclaredConstructors()) {
        names.add("<init>" + descriptor(void.class, constructor.getParameterTypes()));
      }
      return names;
    });
  }

  private static String descriptor(Class<?> result, Class<?>[] parameters) {
    return MethodType.methodType(result, parameters).toMethodDescriptorString();
  }

  /** The pool of constants of a class file (Java Virtual Machine Specification, 4.4). */
  private static final class Constants {
    private static final int UTF8 = 1;
    private static final int INTEGER = 3;
    private static final int FLOAT = 4;
    private static final int LONG = 5;
    private static final int DOUBLE = 6;
    private static final int CLASS = 7;
    private static final int STRING = 8;
    private static final int FIELD = 9;
    private static final int METHOD = 10;
    private static final int INTERFACE_METHOD = 11;
    private static final int NAME_AND_TYPE = 12;
    private static final int METHOD_HANDLE = 15;
    private static final int METHOD_TYPE = 16;
    private static final int DYNAMIC = 17;
    private static final int INVOKE_DYNAMIC = 18;

    /** A method or field of a class, as the class file names it. */
    record Member(String owner, String name, String descriptor) {}

    private Constants() {}

    /** The methods and fields that a class names. */
    static List<Member> read(DataInputStream in) throws IOException {
      in.skipBytes(8);  // magic number and version
      int count = in.readUnsignedShort();
      String[] texts = new String[count];
      int[][] pairs = new int[count][];
      List<int[]> references = new ArrayList<>();
      for (int i = 1; i < count; i++) {
        int tag = in.readUnsignedByte();
        switch (tag) {
          case UTF8 -> texts[i] = in.readUTF();
          case INTEGER, FLOAT -> in.readInt();
          case LONG, DOUBLE -> {
            in.readLong();
            i++;  // such a constant takes two places
          }
          case CLASS, STRING, METHOD_TYPE -> pairs[i] = new int[] {in.readUnsignedShort()};
          case NAME_AND_TYPE, DYNAMIC, INVOKE_DYNAMIC -> pairs[i] = new int[] {in.readUnsignedShort(), in.readUnsignedShort()};
          case FIELD, METHOD, INTERFACE_METHOD -> references.add(new int[] {in.readUnsignedShort(), in.readUnsignedShort()});
          case METHOD_HANDLE -> in.skipBytes(3);
          default -> throw new IOException("constant " + i + " has the unknown tag " + tag);
        }
      }
      List<Member> members = new ArrayList<>();
      for (int[] member : references) {
        int[] named = pairs[member[1]];
        members.add(new Member(texts[pairs[member[0]][0]], texts[named[0]], texts[named[1]]));
      }
      return members;
    }
  }
}
