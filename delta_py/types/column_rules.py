"""Rules in the metadata of columns: the keys of their SQL texts and records.

Protocol: Type Change Metadata; Generated Columns; Default Columns; Column Invariants.
"""

GENERATION = "delta.generationExpression"
INVARIANT = "delta.invariants"
DEFAULT = "CURRENT_DEFAULT"
EXISTS_DEFAULT = "EXISTS_DEFAULT"
TYPE_CHANGES = "delta.typeChanges"
