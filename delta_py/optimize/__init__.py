"""OPTIMIZE, Z-order, clustering, auto compaction and REORG.

In: a version, and which files are eligible. Out: groups of files to rewrite, and a commit that changes no rows.
"""
