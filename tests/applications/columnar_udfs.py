"""Python functions to which scripts send columns. Import this module only when there is a session."""

from __future__ import annotations

import pandas as pd
from pyspark.sql import functions as F


@F.udf("string", useArrow=True)
def shout(text):
    return None if text is None else text.upper()


@F.pandas_udf("long")
def next_one(numbers: pd.Series) -> pd.Series:
    return numbers + 1
