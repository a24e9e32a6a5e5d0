"""Clients of Unity Catalog: its REST API for Delta tables, the names of tables in it, and the credentials that it hands out.

In: a server's URL, a token, the name of a table. Out: where the table is, its unpublished commits, credentials for its files.
Nothing here reads or writes a table. Everything that a server answers is checked before it is used.
"""
