"""The data source: the code that Spark calls, in each of the processes where Spark calls it."""
