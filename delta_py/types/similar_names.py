"""The known name that was probably meant by an unknown one. All errors about unknown names get their suggestion here.

    did_you_mean("merge_schema", ["mergeSchema", "compression"])   # => ' Did you mean mergeSchema?'
    did_you_mean("foo", ["mergeSchema", "compression"])            # => ''
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches

from delta_py.errors import InvalidOptionError

# The share of letters that two names must have in common: 0.82 for `timestamp` and timestampAsOf. Options of other formats are
# below it: 0.73 for `inferSchema` and mergeSchema, 0.53 for `header` and readLease.
_LEAST_SIMILARITY = 0.76
_SHORTEST_ABBREVIATION = 3


def similar_name(name: str, known_names: Iterable[str]) -> str | None:
    """The most similar known name, or the only one that `name` abbreviates; None if no name is near. The case of letters, and the
    characters between words, do not count: `--mergeSchema` is `merge-schema`."""
    letters = _letters(name)
    names_by_letters = {_letters(known_name): known_name for known_name in known_names}
    nearest = get_close_matches(letters, names_by_letters, n=1, cutoff=_LEAST_SIMILARITY)
    if not nearest and len(letters) >= _SHORTEST_ABBREVIATION:
        abbreviated_names = [known_letters for known_letters in names_by_letters if known_letters.startswith(letters)]
        nearest = abbreviated_names if len(abbreviated_names) == 1 else []
    return names_by_letters[nearest[0]] if nearest else None


def did_you_mean(name: str, known_names: Iterable[str]) -> str:
    """A sentence for the end of an error's message, with a space before it; empty if no known name is near."""
    return _suggestion(similar_name(name, known_names))


def unknown_option_error(name: str, known_names: Iterable[str], refusal: str, advice: str) -> InvalidOptionError:
    """The error for an option that does not exist. refusal, advice: the sentences before and after the suggestion of a name."""
    nearest = similar_name(name, known_names)
    return InvalidOptionError(
        f"{refusal}{_suggestion(nearest)} {advice}", error_class="DELTA_UNKNOWN_OPTION", option=name, nearest=nearest
    )


def _suggestion(nearest: str | None) -> str:
    """The sentence that names the nearest known name, with a space before it; empty for None."""
    return "" if nearest is None else f" Did you mean {nearest}?"


def _letters(name: str) -> str:
    return re.sub(r"[\W_]", "", name).lower()
