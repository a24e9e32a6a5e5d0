"""Functions that search in a text: regular expressions, parts between separators, positions.

A function here with the parameters (arguments, result) computes one SQL function, as `Function.run` requires. arguments: Arrow
values, and Python values where SQL requires a constant (None for null). result: the type of the result. A function with (name,
operands) decides the types, as `Function.signature` requires.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from delta_py.errors import ExpressionError
from delta_py.expressions.evaluation_errors import not_supported
from delta_py.expressions.functions.function_types import Function, Operand, Signature, constant_integer, fixed
from delta_py.expressions.functions.like import match_like
from delta_py.expressions.functions.regex import matches_empty, to_re2
from delta_py.expressions.functions.text_functions import TEXTS
from delta_py.expressions.functions.text_growth import spend, text_bytes
from delta_py.types.schema import BOOLEAN, INTEGER, STRING, ArrayType, DataType

_TEXTS = ArrayType(STRING)
# If a replacement can produce at most so many bytes, its matches are not counted.
_UNCOUNTED_BYTES = 1 << 20
# regexp_replace is so many times slower than functions without a pattern, so each of its bytes counts as so many.
_REPLACE_COST_FACTOR = 8


def _all_null(values: Any, result: pa.DataType | None = None) -> Any:
    """As many nulls as there are values: the result of a function with a null as a constant. result: None for text."""
    return pa.nulls(len(values), result or pa.string())


# ---------------------------------------------------------------- regular expressions


def _regex_signature(result: DataType, *more: DataType, optional: int = 0) -> Callable[[str, Sequence[Operand]], Signature]:
    """(text, pattern, ...): an unsupported pattern is refused when the expression is resolved."""
    fixed_signature = fixed(result, STRING, STRING, *more, optional=optional)

    def signature(name: str, operands: Sequence[Operand]) -> Signature:
        resolved = fixed_signature(name, operands)
        pattern = operands[1].value
        if isinstance(pattern, str):
            to_re2(pattern, only_tests=name == "rlike")
            if name != "rlike" and matches_empty(pattern):
                raise not_supported(f"{name} with a pattern that matches the empty text")
        return resolved

    return signature


def _rlike(arguments: list[Any], result: DataType) -> Any:
    values, pattern = arguments
    if pattern is None:
        return _all_null(values, pa.bool_())
    return pc.match_substring_regex(values, to_re2(pattern, only_tests=True))


def _regexp_replace(arguments: list[Any], result: DataType) -> Any:
    """Replaces each match of the pattern. `$1` in the replacement stands for the text of the first group."""
    values, pattern, replacement = arguments
    if pattern is None or replacement is None:
        return _all_null(values)
    regex, re2_replacement = to_re2(pattern), _re2_replacement(replacement)
    _spend_on_replacements(values, regex, replacement)
    return pc.replace_substring_regex(values, regex, re2_replacement)


def _spend_on_replacements(values: Any, regex: str, replacement: str) -> None:
    """Counts the bytes that the result may be longer than the input. A match produces the replacement, and the text
    of each group in it, which is a part of the input."""
    input_bytes, replacement_bytes = text_bytes(values, len(values)), len(replacement.encode())
    max_match_count = input_bytes  # matches are not empty; they are counted only if this many would produce much text
    if input_bytes * replacement_bytes > _UNCOUNTED_BYTES:
        max_match_count = pc.sum(pc.count_substring_regex(values, regex)).as_py() or 0
    # A match removes at least one byte and adds the replacement. A `$` adds a part of the match: each one after the first may add
    # the whole input once more.
    output_bytes = max_match_count * max(replacement_bytes - 1, 0) + input_bytes * max(replacement.count("$") - 1, 0)
    spend("regexp_replace", output_bytes * _REPLACE_COST_FACTOR)


def _re2_replacement(text: str) -> str:
    """Java's `$1` as RE2's `\\1`. Raises ExpressionError for group names and for numbers of two digits."""
    result, position = [], 0
    while position < len(text):
        character, next_character = text[position], text[position + 1 : position + 2]
        is_digit = next_character.isascii() and next_character.isdigit()
        if character == "\\" and next_character:
            result.append("\\\\" if next_character == "\\" else next_character)
            position += 2
        elif character == "$" and is_digit and not text[position + 2 : position + 3].isdigit():
            result.append("\\" + next_character)
            position += 2
        elif character in "$\\":
            raise not_supported(f"The replacement {text[:60]!r}", "Only $0 to $9 can be meant by a dollar sign.")
        else:
            result.append(character)
            position += 1
    return "".join(result)


def _regexp_extract(arguments: list[Any], result: DataType) -> Any:
    """The text of a group in the first match: of the first group by default, of the whole match for group 0. '' if nothing
    matches, or if the group has no part in the match."""
    values, pattern = arguments[:2]
    group = arguments[2] if len(arguments) == 3 else 1
    if pattern is None or group is None:
        return _all_null(values)
    groups = _group_texts(values, pattern, group)
    return pc.if_else(pc.is_valid(values), groups.fill_null(""), None)


def _group_texts(values: Any, pattern: str, group: int) -> Any:
    """The text of the pattern's group of this number."""
    parts = pc.extract_regex(values, to_re2(pattern, name_groups=True))
    if not 0 <= group < parts.type.num_fields:
        raise ExpressionError(
            f"The pattern {pattern[:100]!r} has {parts.type.num_fields - 1} groups, so there is no group {group}.",
            error_class="INVALID_PARAMETER_VALUE.REGEX_GROUP_INDEX",
            sql_state="22023",
        )
    return pc.struct_field(parts, group)


def _regexp_substr(arguments: list[Any], result: DataType) -> Any:
    values, pattern = arguments
    return _all_null(values) if pattern is None else _group_texts(values, pattern, 0)


def _regexp_count(arguments: list[Any], result: DataType) -> Any:
    values, pattern = arguments
    if pattern is None:
        return _all_null(values, pa.int32())
    return pc.count_substring_regex(values, to_re2(pattern)).cast(pa.int32())


def _split_signature(name: str, operands: Sequence[Operand]) -> Signature:
    signature = _regex_signature(_TEXTS, INTEGER, optional=1)(name, operands)
    if len(operands) == 3:
        constant_integer(name, operands[2])
    return signature


def _split(arguments: list[Any], result: DataType) -> Any:
    """The parts between matches of the pattern. A positive limit is the greatest number of parts; other limits return all."""
    values, pattern = arguments[:2]
    limit = arguments[2] if len(arguments) == 3 else -1
    if pattern is None or limit is None:
        return pa.nulls(len(values), pa.list_(pa.string()))
    splits = {"max_splits": limit - 1} if limit > 0 else {}
    return pc.split_pattern_regex(values, to_re2(pattern), **splits) if limit != 1 else _single_element_lists(values)


def _single_element_lists(values: Any) -> Any:
    """A list with each text as its only element; null for null."""
    offsets = pa.array(range(len(values) + 1), pa.int32())
    return pa.ListArray.from_arrays(offsets, values, mask=values.is_null() if values.null_count else None)


# ---------------------------------------------------------------- LIKE as functions


def _ilike(arguments: list[Any], result: DataType) -> Any:
    """LIKE of the lower-case texts and pattern."""
    values, pattern = arguments
    if pattern is None:
        return _all_null(values, pa.bool_())
    lower = TEXTS["lower"].run
    assert lower is not None
    return match_like(lower([values], STRING), lower([pa.array([pattern])], STRING)[0].as_py())


# ---------------------------------------------------------------- separators and positions


def _split_part(arguments: list[Any], result: DataType) -> Any:
    """The n-th part, counted from 1 or from the end with a negative n; '' if there are fewer."""
    values, separator, part = arguments
    if separator is None or part is None:
        return _all_null(values)
    if part == 0:
        raise ExpressionError(
            "The part 0 is not valid: split_part counts from 1, or from the end with a negative number.",
            error_class="INVALID_INDEX_OF_ZERO",
            sql_state="22003",
        )
    parts = pc.split_pattern(values, separator) if separator else _single_element_lists(values)
    lengths = pc.list_value_length(parts)
    # The position of the part in its list, from 0.
    position = pc.add(lengths, part) if part < 0 else pc.if_else(pc.is_valid(lengths), pa.scalar(part - 1, pa.int32()), None)
    is_inside = pc.and_(pc.greater_equal(position, 0), pc.less(position, lengths))
    starts = parts.offsets.slice(0, len(parts)).cast(pa.int64())
    texts = parts.values.take(pc.if_else(is_inside, pc.add(starts, position.cast(pa.int64())), None))
    return pc.if_else(pc.is_valid(values), texts.fill_null(""), None)


def _split_part_signature(name: str, operands: Sequence[Operand]) -> Signature:
    signature = fixed(STRING, STRING, STRING, INTEGER)(name, operands)
    constant_integer(name, operands[2])
    return signature


def _substring_index(arguments: list[Any], result: DataType) -> Any:
    """The text before the n-th separator, or with a negative n after the n-th from the end; the whole text if there are fewer."""
    values, separator, count = arguments
    if separator is None or count is None:
        return _all_null(values)
    if not separator or count == 0:
        return pc.if_else(pc.is_valid(values), "", None)
    if count > 0:
        parts = pc.list_slice(pc.split_pattern(values, separator), 0, count)
        return pc.binary_join(parts, separator)
    last_parts = pc.split_pattern(values, separator, max_splits=-count, reverse=True)
    has_more_parts = pc.greater(pc.list_value_length(last_parts), -count)
    all_but_first = pc.list_slice(last_parts, 1, None, return_fixed_size_list=False)
    return pc.if_else(has_more_parts, pc.binary_join(all_but_first, separator), values)


def _locate(arguments: list[Any], result: DataType) -> Any:
    """locate(part, text): the position, from 1, at which the part first begins; 0 if the text does not contain the part."""
    searched_text, values = arguments[:2]
    if searched_text is None:
        return _all_null(values, pa.int32())
    if not searched_text:  # every text begins with the empty text
        return pc.if_else(pc.is_valid(values), pa.scalar(1, pa.int32()), None)
    parts = pc.split_pattern(values, searched_text, max_splits=1)
    text_before = pc.list_element(parts, 0)
    position = pc.add(pc.utf8_length(text_before), 1).cast(pa.int32())
    return pc.if_else(pc.greater(pc.list_value_length(parts), 1), position, pa.scalar(0, pa.int32()))


def _instr(arguments: list[Any], result: DataType) -> Any:
    """instr(text, part) is locate(part, text)."""
    return _locate(arguments[::-1], result)


# ---------------------------------------------------------------- initcap


def _initcap(arguments: list[Any], result: DataType) -> Any:
    """Each word in lower case with a first letter in upper case. Only blanks separate words."""
    lower, upper = TEXTS["lower"].run, TEXTS["upper"].run
    assert lower is not None and upper is not None
    values = arguments[0]
    if pc.all(pc.string_is_ascii(values)).as_py() is False:
        raise not_supported("initcap on text beyond ASCII")
    words = pc.split_pattern(lower([values], STRING), " ")
    all_words = words.flatten()
    capitalized_words = pc.binary_join_element_wise(
        upper([pc.utf8_slice_codeunits(all_words, 0, 1)], STRING), pc.utf8_slice_codeunits(all_words, 1), ""
    )
    # The changed words go back to the lists that they came from.
    lengths = pc.list_value_length(words).fill_null(0)
    ends = pc.cumulative_sum(lengths)
    offsets = pa.concat_arrays([pa.array([0], pa.int32()), ends.cast(pa.int32())])
    mask = values.is_null() if values.null_count else None
    return pc.binary_join(pa.ListArray.from_arrays(offsets, capitalized_words, mask=mask), " ")


_SECOND_ARGUMENT = frozenset({1})
_ALL_BUT_FIRST = frozenset({1, 2})

PATTERNS: dict[str, Function] = {
    "rlike": Function(_regex_signature(BOOLEAN), _rlike, constants=_SECOND_ARGUMENT),
    "ilike": Function(fixed(BOOLEAN, STRING, STRING), _ilike, constants=_SECOND_ARGUMENT),
    "regexp_replace": Function(_regex_signature(STRING, STRING), _regexp_replace, constants=_ALL_BUT_FIRST),
    "regexp_extract": Function(
        _regex_signature(STRING, INTEGER, optional=1), _regexp_extract, constants=_ALL_BUT_FIRST, can_fail=True
    ),
    "regexp_substr": Function(_regex_signature(STRING), _regexp_substr, constants=_SECOND_ARGUMENT),
    "regexp_count": Function(_regex_signature(INTEGER), _regexp_count, constants=_SECOND_ARGUMENT),
    "split": Function(_split_signature, _split, constants=_ALL_BUT_FIRST),
    "split_part": Function(_split_part_signature, _split_part, constants=_ALL_BUT_FIRST, can_fail=True),
    "substring_index": Function(_split_part_signature, _substring_index, constants=_ALL_BUT_FIRST),
    "locate": Function(fixed(INTEGER, STRING, STRING), _locate, constants=frozenset({0})),
    "instr": Function(fixed(INTEGER, STRING, STRING), _instr, constants=_SECOND_ARGUMENT),
    "initcap": Function(fixed(STRING, STRING), _initcap),
}
