"""What commits change, row by row."""
