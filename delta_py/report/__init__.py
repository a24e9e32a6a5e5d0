"""The report of a table: facts, advice, an HTML page, and metrics for Prometheus.

In: a snapshot. Out: `TableFacts`, in which unknown values have a reason, and the texts that show them.
"""
