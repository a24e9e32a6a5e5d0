package pydelta.driver;

import java.util.concurrent.Callable;

/** What the driver's Python returns for one request. failure: why it returns nothing; null if it has answered. */
public record Answer<T>(T value, Throwable failure) {
  /** Makes the request. An interrupt that ends it stays set in this thread. */
  static <T> Answer<T> of(Callable<T> request) {
    try {
      return new Answer<>(request.call(), null);
    } catch (Exception | LinkageError error) {
      if (error instanceof InterruptedException) Thread.currentThread().interrupt();
      return failed(error);
    }
  }

  public static <T> Answer<T> failed(Throwable failure) {
    return new Answer<>(null, failure);
  }

  public boolean isFailed() {
    return failure != null;
  }
}
