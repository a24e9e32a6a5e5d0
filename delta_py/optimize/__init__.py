"""OPTIMIZE, Z-order, clustering, auto compaction and REORG.

In: a version, and the choice of files. Out: groups of files to rewrite, and a commit that changes no rows.
"""
