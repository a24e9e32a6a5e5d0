"""The rows that commits change."""
