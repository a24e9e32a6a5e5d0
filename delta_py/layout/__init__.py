"""The arrangement of rows in files: orders by several columns at once, and how well they let readers skip files."""
