"""Which commits of which tables are ratified: ledgers in databases. Nothing here reads or writes a table."""
