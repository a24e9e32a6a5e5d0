"""Functions on text: characters are Unicode code points, order and equality are by bytes.

A function here with the parameters (arguments, result) computes one SQL function, as `Function.run` requires. arguments: Arrow
values, and Python values where SQL requires a constant (None for null). result: the type of the result. A function with (name,
operands) decides the types, as `Function.signature` requires.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from functools import lru_cache, reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from delta_py.expressions.coercion import is_atomic
from delta_py.expressions.evaluation_errors import mismatch, not_supported
from delta_py.expressions.functions.function_types import Function, Operand, Signature, check_count, constant_integer, fixed
from delta_py.expressions.functions.text_growth import spend, text_bytes
from delta_py.types.schema import BINARY, BOOLEAN, INTEGER, STRING, VOID, DataType

_CAPITAL_SIGMA = "\u03a3"  # its lower case depends on its place: at the end of a word it is another letter

# ---------------------------------------------------------------- upper and lower


@lru_cache(maxsize=2)
def _special_characters(upper: bool) -> dict[str, str]:
    """Characters whose full case mapping differs from the simple one that Arrow applies -> the text that they become."""
    characters = [c for c in map(chr, range(0x80, sys.maxunicode + 1)) if not 0xD800 <= ord(c) <= 0xDFFF]
    kernel = pc.utf8_upper if upper else pc.utf8_lower
    simple = kernel(pa.array(characters)).to_pylist()
    full = [c.upper() if upper else c.lower() for c in characters]
    return {c: full_case for c, full_case, simple_case in zip(characters, full, simple, strict=True) if full_case != simple_case}


@lru_cache(maxsize=2)
def _special_pattern(upper: bool) -> str:
    """A regular expression for the characters whose case Arrow does not change as Spark does."""
    return "[" + "".join(re.escape(c) for c in _special_characters(upper)) + _CAPITAL_SIGMA * (not upper) + "]"


def _change_case(values: Any, *, upper: bool) -> Any:
    """Arrow's kernels change one character at a time. This differs from Spark for characters whose other case has several,
    such as ß, and for the last sigma of a word.
    """
    kernel = pc.utf8_upper if upper else pc.utf8_lower
    if pc.all(pc.string_is_ascii(values)).as_py() in (True, None):  # None: all values are null
        return (pc.ascii_upper if upper else pc.ascii_lower)(values)
    is_special = pc.match_substring_regex(values, _special_pattern(upper))
    if not pc.any(is_special).as_py():
        return kernel(values)
    # Few columns contain such characters, and those have few distinct texts: Python applies Unicode's full rules to each text.
    encoded = values.filter(is_special).dictionary_encode()
    changed_texts = [text.upper() if upper else text.lower() for text in encoded.dictionary.to_pylist()]
    special_texts = pa.array(changed_texts, pa.string()).take(encoded.indices)
    return pc.replace_with_mask(kernel(values), is_special.fill_null(False), special_texts)


def _upper(arguments: list[Any], result: DataType) -> Any:
    return _change_case(arguments[0], upper=True)


def _lower(arguments: list[Any], result: DataType) -> Any:
    return _change_case(arguments[0], upper=False)


# ---------------------------------------------------------------- lengths and parts


def _length_signature(name: str, operands: Sequence[Operand]) -> Signature:
    check_count(name, operands, 1, 1)
    if operands[0].data_type == BINARY:
        return Signature((BINARY,), INTEGER)
    return fixed(INTEGER, STRING)(name, operands)


def _length(arguments: list[Any], result: DataType) -> Any:
    values = arguments[0]
    kernel = pc.binary_length if pa.types.is_binary(values.type) else pc.utf8_length
    return kernel(values).cast(pa.int32())


def _part_signature(name: str, operands: Sequence[Operand]) -> Signature:
    """substring(text, position[, length]), left(text, length), right(text, length); the numbers are constants."""
    check_count(name, operands, 2, 3 if name == "substring" else 2)
    if operands[0].data_type == BINARY:
        raise not_supported(f"{name} on binary")
    if not (is_atomic(operands[0].data_type) or operands[0].data_type == VOID):
        raise mismatch(name, operands[0].data_type)
    for operand in operands[1:]:
        constant_integer(name, operand)
    return Signature((STRING, *(operand.data_type for operand in operands[1:])), STRING)


def _substring(arguments: list[Any], result: DataType) -> Any:
    """Positions count from 1, or from the end if negative; 0 is read as 1."""
    values, position = arguments[:2]
    length = arguments[2] if len(arguments) == 3 else 2**31 - 1
    if position is None or length is None:
        return pa.nulls(len(values), pa.string())
    if length <= 0:
        return _empty_texts(values)
    if position >= 0:
        start = max(position - 1, 0)
        return _slice(values, start, min(start + length, 2**31 - 1))
    # A position from the end. The part may end before the end of the text, or reach it (None).
    end = position + length
    return _slice(values, position, end if end < 0 else None)


def _slice(values: Any, start: int, stop: int | None) -> Any:
    """The characters from start to stop (exclusive); negative positions count from the end. stop: None for the end."""
    return pc.utf8_slice_codeunits(values, start, stop)


def _empty_texts(values: Any) -> Any:
    """An empty text for each value, null for null."""
    return pc.if_else(pc.is_valid(values), "", None)


def _left(arguments: list[Any], result: DataType) -> Any:
    return _substring([arguments[0], 1, arguments[1]], result)


def _right(arguments: list[Any], result: DataType) -> Any:
    """The last characters of each text."""
    values, length = arguments
    if length is None:
        return pa.nulls(len(values), pa.string())
    return _empty_texts(values) if length <= 0 else _slice(values, -length, None)


# ---------------------------------------------------------------- trimming, joining, replacing


def _trim(kernel: Any) -> Callable[[list[Any], DataType], Any]:
    """trim(text) or, as the parser orders them, trim(text, characters)."""

    def run(arguments: list[Any], result: DataType) -> Any:
        characters = arguments[1] if len(arguments) == 2 else " "
        if characters is None:
            return pa.nulls(len(arguments[0]), pa.string())
        return kernel(arguments[0], characters=characters) if characters else arguments[0]

    return run


def _concat_signature(name: str, operands: Sequence[Operand]) -> Signature:
    """Bytes if all arguments are bytes or null, otherwise text."""
    types = {operand.data_type for operand in operands} - {VOID}
    if types == {BINARY}:
        return Signature((BINARY,) * len(operands), BINARY)
    for operand in operands:
        if not (is_atomic(operand.data_type) or operand.data_type == VOID):
            raise mismatch(name, operand.data_type)
    return Signature((STRING,) * len(operands), STRING)


def spend_joined(name: str, arguments: Sequence[Any]) -> None:
    """Record the bytes that joining texts produces: the joined text is longer than the largest argument by at most the size of
    the other arguments. Raises as spend."""
    row_count = next((len(argument) for argument in arguments if isinstance(argument, pa.Array)), 1)
    sizes = [text_bytes(argument, row_count) for argument in arguments]
    spend(name, sum(sizes) - max(sizes, default=0))


def _concat(arguments: list[Any], result: DataType) -> Any:
    spend_joined("concat", arguments)
    empty = pa.scalar(b"") if result == BINARY else pa.scalar("")
    return pc.binary_join_element_wise(*arguments, empty)


def _replace(arguments: list[Any], result: DataType) -> Any:
    """Replaces each occurrence, and counts the bytes that the result is longer."""
    values, old = arguments[:2]
    new = arguments[2] if len(arguments) == 3 else ""
    if old is None or new is None:
        return pa.nulls(len(values), pa.string())
    if not old:
        return values
    added_bytes = len(new.encode()) - len(old.encode())
    if added_bytes > 0:
        spend("replace", added_bytes * (pc.sum(pc.count_substring(values, old)).as_py() or 0))
    return pc.replace_substring(values, old, new)


def _match(kernel: Any) -> Callable[[list[Any], DataType], Any]:
    """startswith, endswith and contains. kernel: (texts, constant text) -> booleans."""

    def run(arguments: list[Any], result: DataType) -> Any:
        if arguments[1] is None:
            return pa.nulls(len(arguments[0]), pa.bool_())
        return kernel(arguments[0], arguments[1])

    return run


# ---------------------------------------------------------------- filling, repeating, translating


def _pad_signature(name: str, operands: Sequence[Operand]) -> Signature:
    """lpad and rpad: (text, length[, filling])."""
    check_count(name, operands, 2, 3)
    if operands[0].data_type == BINARY:
        raise not_supported(f"{name} on binary")
    constant_integer(name, operands[1])
    fixed(STRING, STRING, INTEGER, STRING, optional=1)(name, operands)  # only checks the arguments
    # The length is a constant already, so it keeps its type.
    types = tuple(STRING if position != 1 else operand.data_type for position, operand in enumerate(operands))
    return Signature(types, STRING)


def _pad(side: str) -> Callable[[list[Any], DataType], Any]:
    """lpad and rpad: each text gets exactly so many characters. A longer text is cut off at its end. A shorter text is
    padded with the filling, repeated as often as needed. side: where the padding goes, left or right."""

    def run(arguments: list[Any], result: DataType) -> Any:
        values, length = arguments[:2]
        filling = arguments[2] if len(arguments) == 3 else " "
        if length is None or filling is None:
            return pa.nulls(len(values), pa.string())
        if length <= 0:
            return _empty_texts(values)
        cut_texts = _slice(values, 0, length)
        if not filling:
            return cut_texts
        missing_counts = pc.subtract(length, pc.utf8_length(cut_texts))
        spend("lpad" if side == "left" else "rpad", (pc.sum(missing_counts).as_py() or 0) * max(len(c.encode()) for c in filling))
        # Fillings, made once for each missing length.
        distinct_counts = missing_counts.dictionary_encode()
        fillings = [(filling * (count // len(filling) + 1))[:count] for count in distinct_counts.dictionary.to_pylist()]
        padding = pa.array(fillings, pa.string()).take(distinct_counts.indices)
        parts = (padding, cut_texts) if side == "left" else (cut_texts, padding)
        return pc.binary_join_element_wise(*parts, "")

    return run


def _repeat_signature(name: str, operands: Sequence[Operand]) -> Signature:
    """repeat(text, count). The count is a constant already, so it keeps its type; `fixed` only checks it."""
    check_count(name, operands, 2, 2)
    constant_integer(name, operands[1])
    return Signature((STRING, operands[1].data_type), fixed(STRING, STRING, INTEGER)(name, operands).result)


def _repeat(arguments: list[Any], result: DataType) -> Any:
    """The texts repeated, after the bytes of the result were counted."""
    values, count = arguments
    if count is None:
        return pa.nulls(len(values), pa.string())
    spend("repeat", text_bytes(values, len(values)) * max(count - 1, 0))
    return pc.binary_repeat(values, max(count, 0))


def _translate(arguments: list[Any], result: DataType) -> Any:
    """Each character of the second argument becomes the one at its position in the third, or is removed."""
    values, old, new = arguments
    if old is None or new is None:
        return pa.nulls(len(values), pa.string())
    # Backwards, so that the first position of a repeated character decides.
    table = {character: new[position] if position < len(new) else "" for position, character in reversed(list(enumerate(old)))}
    # First replaces by temporary characters that the texts do not contain, so that no replacement is replaced again.
    temporary_characters = _unused_characters(values, len(table))
    for temporary_character, character in zip(temporary_characters, table, strict=True):
        values = pc.replace_substring(values, character, temporary_character)
    for temporary_character, replacement in zip(temporary_characters, table.values(), strict=True):
        values = pc.replace_substring(values, temporary_character, replacement)
    return values


def _unused_characters(values: Any, count: int) -> list[str]:
    """Characters of the private use area that no value contains."""
    characters: list[str] = []
    for code in range(0xF0000, 0x10FFFE):
        if len(characters) == count:
            break
        if not pc.any(pc.match_substring(values, chr(code))).as_py():
            characters.append(chr(code))
    return characters


def _concat_ws_signature(name: str, operands: Sequence[Operand]) -> Signature:
    check_count(name, operands, 1, None)
    for operand in operands:
        if not (is_atomic(operand.data_type) or operand.data_type == VOID):
            raise not_supported(f"{name} on arrays")
    return Signature((STRING,) * len(operands), STRING)


def _concat_ws(arguments: list[Any], result: DataType) -> Any:
    """Ignores nulls; null only for a null separator."""
    separator, *texts = arguments
    if separator is None:
        return pa.nulls(len(texts[0]) if texts else 1, pa.string())
    if not texts:
        return pa.array([""])
    spend("concat_ws", text_bytes(pa.scalar(separator), len(texts[0]) if isinstance(texts[0], pa.Array) else 1) * len(texts))
    spend_joined("concat_ws", texts)
    # Arrow returns no row at all if every text is null and ignored, so the first is empty then.
    are_all_null = reduce(pc.and_, [pc.is_null(text) for text in texts])
    return pc.binary_join_element_wise(pc.if_else(are_all_null, "", texts[0]), *texts[1:], separator, null_handling="skip")


def _space(arguments: list[Any], result: DataType) -> Any:
    """Texts of so many blanks; empty for a negative number."""
    counts = pc.max_element_wise(arguments[0], 0, skip_nulls=False)
    spend("space", pc.sum(counts).as_py() or 0)
    return pc.binary_repeat(" ", counts)


def _byte_length_function(factor: int) -> Function:
    """A function that returns the length of a text in bytes or bits. factor: the units in a byte, 1 for bytes and 8 for bits."""

    def signature(name: str, operands: Sequence[Operand]) -> Signature:
        return _length_signature(name, operands)

    def run(arguments: list[Any], result: DataType) -> Any:
        return pc.multiply(pc.binary_length(arguments[0]), factor).cast(pa.int32())

    return Function(signature, run)


_SECOND_ARGUMENT = frozenset({1})

TEXTS: dict[str, Function] = {
    "upper": Function(fixed(STRING, STRING), _upper),
    "lower": Function(fixed(STRING, STRING), _lower),
    "length": Function(_length_signature, _length),
    "substring": Function(_part_signature, _substring, constants=frozenset({1, 2})),
    "left": Function(_part_signature, _left, constants=_SECOND_ARGUMENT, increasing=True),
    "right": Function(_part_signature, _right, constants=_SECOND_ARGUMENT),
    "trim": Function(fixed(STRING, STRING, STRING, optional=1), _trim(pc.utf8_trim), constants=_SECOND_ARGUMENT),
    "ltrim": Function(fixed(STRING, STRING, STRING, optional=1), _trim(pc.utf8_ltrim), constants=_SECOND_ARGUMENT),
    "rtrim": Function(fixed(STRING, STRING, STRING, optional=1), _trim(pc.utf8_rtrim), constants=_SECOND_ARGUMENT),
    "concat": Function(_concat_signature, _concat),
    "replace": Function(fixed(STRING, STRING, STRING, STRING, optional=1), _replace, constants=frozenset({1, 2})),
    "startswith": Function(fixed(BOOLEAN, STRING, STRING), _match(pc.starts_with), constants=_SECOND_ARGUMENT),
    "endswith": Function(fixed(BOOLEAN, STRING, STRING), _match(pc.ends_with), constants=_SECOND_ARGUMENT),
    "contains": Function(fixed(BOOLEAN, STRING, STRING), _match(pc.match_substring), constants=_SECOND_ARGUMENT),
    "btrim": Function(fixed(STRING, STRING, STRING, optional=1), _trim(pc.utf8_trim), constants=_SECOND_ARGUMENT),
    "lpad": Function(_pad_signature, _pad("left"), constants=frozenset({1, 2})),
    "rpad": Function(_pad_signature, _pad("right"), constants=frozenset({1, 2})),
    "repeat": Function(_repeat_signature, _repeat, constants=_SECOND_ARGUMENT),
    "reverse": Function(fixed(STRING, STRING), lambda arguments, result: pc.utf8_reverse(arguments[0])),
    "translate": Function(fixed(STRING, STRING, STRING, STRING), _translate, constants=frozenset({1, 2})),
    "concat_ws": Function(_concat_ws_signature, _concat_ws, constants=frozenset({0})),
    "space": Function(fixed(STRING, INTEGER), _space),
    "octet_length": _byte_length_function(1),
    "bit_length": _byte_length_function(8),
}
