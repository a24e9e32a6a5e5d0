"""The data source: what Spark asks, in the processes where it asks."""
