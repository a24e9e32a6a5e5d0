"""Rules that columns carry in their metadata: the keys under which their SQL texts stand.

Protocol: Generated Columns; Default Columns; Column Invariants.
"""

GENERATION = "delta.generationExpression"
INVARIANT = "delta.invariants"
DEFAULT = "CURRENT_DEFAULT"
EXISTS_DEFAULT = "EXISTS_DEFAULT"
