"""Ledgers in databases: they decide which commits of which tables are ratified.

In: staged commits of one table or several. Out: the newest ratified versions. Nothing here reads or writes a table.
"""
