"""Ledgers in databases: they decide which commits of which tables are ratified. Nothing here reads or writes a table."""
