"""Translates Java's regular expressions to RE2, which Arrow uses.

Only syntax with the same meaning in both is accepted: characters, classes, groups, alternatives, greedy and lazy repetition, `^`,
and `\\d \\w \\s` (ASCII only in both). Look-around, back references, possessive repetition, flags, `\\b` and Unicode classes are
refused by name, and so is `$` if it could match before a final line end.
"""

from __future__ import annotations

import re

from delta_py.expressions.evaluation_errors import not_supported, shown

_LINE_END = "\\n\\r\\x{85}\\x{2028}\\x{2029}"
_BEFORE_FINAL_LINE_END = "(?:(?:\\r\\n|[" + _LINE_END + "])?\\z)"
_CLASSES = {"d": "0-9", "w": "A-Za-z0-9_", "s": "\\t\\n\\x0B\\f\\r "}
_CONTROLS = frozenset("tnrf")
_QUANTIFIER = re.compile(r"[*+?]|\{\d{1,3}(?:,\d{0,3})?\}")
_ORDINARY_ESCAPES = frozenset(".\\+*?[](){}^$|-/&#~!@%=:;,<>'\"` ")


def to_re2(pattern: str, *, only_tests: bool = False, name_groups: bool = False) -> str:
    """The pattern in RE2's syntax.

    only_tests: the caller only tests whether the pattern matches somewhere, so `$` may consume a line end.
    name_groups: whether to name the groups g1, g2, ..., and the whole pattern g0.

    Raises ExpressionError with the name of unsupported syntax.
    """
    result: list[str] = []
    position = depth = group_count = 0
    while position < len(pattern):
        character = pattern[position]
        if character == "\\":
            translated, position = _translate_escape(pattern, position)
        elif character == "[":
            translated, position = _translate_class(pattern, position)
        elif character == "(":
            translated, position = _translate_group_start(pattern, position)
            depth += 1
            if name_groups and translated == "(":
                group_count += 1
                translated = f"(?P<g{group_count}>"
        else:
            translated, position = _translate_character(pattern, position, only_tests), position + 1
            depth -= character == ")"
        position = _append_with_repetition(pattern, position, result, translated, character)
    if depth:
        raise _unsupported_syntax(pattern, "a parenthesis that is not closed")
    return f"(?P<g0>{''.join(result)})" if name_groups else "".join(result)


def matches_empty(pattern: str) -> bool:
    """Whether a pattern (that to_re2 accepts) matches the empty text: its matches are then counted differently."""
    # Python's re has another name for the end, and does not know these two line ends, which an empty text does not contain.
    try:
        return re.search(pattern.replace("\\z", "\\Z").replace("\\x{85}", "").replace("\\x{2028}", ""), "") is not None
    except re.error:
        return True


def _unsupported_syntax(pattern: str, what: str) -> Exception:
    return not_supported(f"The regular expression {shown(pattern)} with {what}", "Write it in simpler terms.")


def _translate_character(pattern: str, position: int, only_tests: bool) -> str:
    """Translate one character outside of classes that begins neither an escape nor a group. only_tests: see to_re2."""
    character = pattern[position]
    if character == ".":
        return f"[^{_LINE_END}]"  # Java's dot matches no line end
    if character == "$":  # in Java, it also matches before a line end that is the last thing in the text
        if not only_tests or position != len(pattern) - 1:
            raise _unsupported_syntax(pattern, "$ inside of it, or where its match is cut out or replaced")
        return _BEFORE_FINAL_LINE_END
    if character == "^" and position:
        raise _unsupported_syntax(pattern, "^ inside of it")
    if character in "*+?{":
        raise _unsupported_syntax(pattern, f"{character!r} that repeats nothing")
    return "\\" + character if character in "]}" else character


def _append_with_repetition(pattern: str, position: int, result: list[str], translated: str, character: str) -> int:
    """Appends an item and its repetition to the result. The repetition of a group comes after its closing parenthesis.

    position: the position after the item in the pattern. translated: the item for RE2. character: the first one of the item in
    the pattern. Returns the position after the repetition.
    """
    result.append(translated)
    quantifier = _QUANTIFIER.match(pattern, position)
    if quantifier is None:
        return position
    if character in "(|^$" and not translated.startswith("["):
        raise _unsupported_syntax(pattern, f"{quantifier.group()!r} that repeats nothing")
    position = quantifier.end()
    result.append(quantifier.group())
    if pattern[position : position + 1] == "?":
        result.append("?")
        position += 1
    if pattern[position : position + 1] in ("+", "*", "{") and position < len(pattern):
        raise _unsupported_syntax(pattern, "a repetition of a repetition")
    return position


def _translate_escape(pattern: str, position: int) -> tuple[str, int]:
    """Translate the escape at a position; also returns the position after it."""
    next_character = pattern[position + 1 : position + 2]  # empty at the end of the pattern
    if next_character.lower() in _CLASSES and next_character:
        members = _CLASSES[next_character.lower()]
        return (f"[^{members}]" if next_character.isupper() else f"[{members}]"), position + 2
    if (next_character in _CONTROLS and next_character) or (next_character in _ORDINARY_ESCAPES and next_character):
        return "\\" + next_character if next_character != " " else " ", position + 2
    raise _unsupported_syntax(pattern, f"\\{next_character}")


def _translate_group_start(pattern: str, position: int) -> tuple[str, int]:
    """Translate the beginning of a group; also returns the position after it."""
    if pattern.startswith("(?:", position):
        return "(?:", position + 3
    if pattern.startswith("(?", position) or pattern.startswith("(*", position):
        raise _unsupported_syntax(pattern, pattern[position : position + 4])
    return "(", position + 1


def _translate_class(pattern: str, position: int) -> tuple[str, int]:
    """Translate the character class at a position; also returns the position after it."""
    start = position
    position += 1
    parts = ["["]
    if pattern[position : position + 1] == "^":
        parts.append("^")
        position += 1
    first_position = position  # a ] at this position is refused
    while pattern[position : position + 1] != "]" or position == first_position:
        character = pattern[position : position + 1]
        is_closing_first = character == "]" and position == first_position
        if not character or character == "[" or pattern.startswith("&&", position) or is_closing_first:
            raise _unsupported_syntax(pattern, f"the class {pattern[start : start + 20]}")
        if character == "\\":
            next_character = pattern[position + 1 : position + 2]
            if next_character in _CLASSES and next_character:
                if pattern[position + 2 : position + 3] == "-" and pattern[position + 3 : position + 4] != "]":
                    raise _unsupported_syntax(pattern, f"\\{next_character}- in a class")
                parts.append(_CLASSES[next_character])
            elif next_character in _CONTROLS | _ORDINARY_ESCAPES and next_character:
                parts.append(" " if next_character == " " else "\\" + next_character)
            else:
                raise _unsupported_syntax(pattern, f"\\{next_character} in a class")
            position += 2
            continue
        parts.append("\\^" if character == "^" else character)
        position += 1
    return "".join(parts) + "]", position + 1
