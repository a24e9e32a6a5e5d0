"""Clones, conversions of Parquet directories, RESTORE, and manifests for other engines.

In: a source version, or Parquet files. Out: a version of the target with the same rows.
"""
