"""Secondary indexes: which data files hold a value of a column."""
