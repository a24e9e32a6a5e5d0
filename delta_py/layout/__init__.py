"""How rows are arranged in files: orders of several columns at once, and how well they let readers skip files."""
