package pydelta.tables;

import java.util.concurrent.Callable;
import org.apache.spark.unsafe.Platform;

/** Errors of the catalogs, in the form of errors of Python workers. spark_plugin/exceptions.py makes Delta's errors of them. */
public class Errors {
  private Errors() {}

  public static RuntimeException unsupported(String message) {
    return of("UnsupportedOperationError", "DELTA_OPERATION_NOT_SUPPORTED", message);
  }

  /** The error of this class of delta_py.errors. */
  public static RuntimeException of(String kind, String condition, String message) {
    return new UnsupportedOperationException(text(kind, condition, message));
  }

  /** The end of a traceback of Python. The message is one line, the last that Spark shows. */
  public static String text(String kind, String condition, String message) {
    return "\ndelta_py.errors." + kind + ": [" + condition + "] " + message.replace('\n', ' ').replace('\r', ' ');
  }

  /** Whether the source found no table. */
  public static boolean isTableNotFound(Throwable error) {
    return isLast(error, "errors.TableNotFoundError") || isMissingInCatalog(error);
  }

  /** Whether a catalog's server does not know the table. */
  public static boolean isMissingInCatalog(Throwable error) {
    return isLast(error, "unity.catalog_errors.CatalogObjectNotFoundError");
  }

  /** Whether a traceback of Python ends with an error of this class of delta_py. */
  private static boolean isLast(Throwable error, String kind) {
    String text = String.valueOf(error.getMessage());
    int last = text.lastIndexOf("\ndelta_py.");
    return last >= 0 && text.startsWith("\ndelta_py." + kind + ":", last);
  }

  /** The result of a call. Its checked exceptions are thrown undeclared, as Scala does. */
  public static <T> T undeclared(Callable<T> call) {
    try {
      return call.call();
    } catch (Exception error) {
      throw unchecked(error);
    }
  }

  /** Throws the error itself, even if Java wants it declared. */
  public static RuntimeException unchecked(Throwable error) {
    Platform.throwException(error);
    throw new AssertionError(error);
  }
}
