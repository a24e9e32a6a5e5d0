"""ALTER TABLE: columns, constraints, properties, features.

In: a table and the change. Out: a commit with new metadata or protocol, and files that the change requires.
"""
