"""Rules that columns carry in their metadata: the keys under which their SQL texts and records stand.

Protocol: Type Change Metadata; Generated Columns; Default Columns; Column Invariants.
"""

GENERATION = "delta.generationExpression"
INVARIANT = "delta.invariants"
DEFAULT = "CURRENT_DEFAULT"
EXISTS_DEFAULT = "EXISTS_DEFAULT"
TYPE_CHANGES = "delta.typeChanges"
