package pydelta.catalog;

/** Spark 4.1 has no changelogs, so nothing makes one. */
final class SourceChangelog {
  private SourceChangelog() {}
}
