"""The definition of a table: how it is created, replaced and evolved, with its properties and protocol.

In: a request with a schema, properties and partition or clustering columns. Out: protocol, metadata and domain actions.
"""
