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


def to_re2(pattern: str, *, only_tests: bool = False, named: bool = False) -> str:
    """The pattern for RE2. only_tests: the caller only tests whether it matches somewhere, so `$` may consume a line end. named:
    its groups are called g1, g2, ..., and the whole is g0.

    Raises ExpressionError with the name of unsupported syntax.
    """
    result: list[str] = []
    place = depth = groups = 0
    while place < len(pattern):
        character = pattern[place]
        if character == "\\":
            translated, place = _escape(pattern, place)
        elif character == "[":
            translated, place = _class(pattern, place)
        elif character == "(":
            translated, place = _group(pattern, place)
            depth += 1
            if named and translated == "(":
                groups += 1
                translated = f"(?P<g{groups}>"
        else:
            translated, place = _plain(pattern, place, only_tests), place + 1
            depth -= character == ")"
        place = _quantified(pattern, place, result, translated, character)
    if depth:
        raise _refused(pattern, "a parenthesis that is not closed")
    return f"(?P<g0>{''.join(result)})" if named else "".join(result)


def matches_empty(pattern: str) -> bool:
    """Whether a pattern (that to_re2 accepts) matches the empty text: its matches are then counted differently."""
    # Python's re has another name for the end, and does not know these two line ends, which an empty text has not.
    try:
        return re.search(pattern.replace("\\z", "\\Z").replace("\\x{85}", "").replace("\\x{2028}", ""), "") is not None
    except re.error:
        return True


def _refused(pattern: str, what: str) -> Exception:
    return not_supported(f"The regular expression {shown(pattern)} with {what}", "Write it in simpler terms.")


def _plain(pattern: str, place: int, only_tests: bool) -> str:
    """Translate one ordinary character."""
    character = pattern[place]
    if character == ".":
        return f"[^{_LINE_END}]"
    if character == "$":
        if not only_tests or place != len(pattern) - 1:
            raise _refused(pattern, "$ inside of it, or where its match is cut out or replaced")
        return _BEFORE_FINAL_LINE_END
    if character == "^" and place:
        raise _refused(pattern, "^ inside of it")
    if character in "*+?{":
        raise _refused(pattern, f"{character!r} that repeats nothing")
    return "\\" + character if character in "]}" else character


def _quantified(pattern: str, place: int, result: list[str], translated: str, character: str) -> int:
    """Appends an item and its repetition to the result. The repetition of a group comes after its closing parenthesis.

    place: the position after the item in the pattern. translated: the item for RE2. character: the first one of the item in the
    pattern. Returns the position after the repetition.
    """
    result.append(translated)
    quantifier = _QUANTIFIER.match(pattern, place)
    if quantifier is None:
        return place
    if character in "(|^$" and not translated.startswith("["):
        raise _refused(pattern, f"{quantifier.group()!r} that repeats nothing")
    place = quantifier.end()
    result.append(quantifier.group())
    if pattern[place : place + 1] == "?":
        result.append("?")
        place += 1
    if pattern[place : place + 1] in ("+", "*", "{") and place < len(pattern):
        raise _refused(pattern, "a repetition of a repetition")
    return place


def _escape(pattern: str, place: int) -> tuple[str, int]:
    """Translate the escape at a position; also returns the position after it."""
    following = pattern[place + 1 : place + 2]  # empty at the end of the pattern
    if following.lower() in _CLASSES and following:
        inside = _CLASSES[following.lower()]
        return (f"[^{inside}]" if following.isupper() else f"[{inside}]"), place + 2
    if (following in _CONTROLS and following) or (following in _ORDINARY_ESCAPES and following):
        return "\\" + following if following != " " else " ", place + 2
    raise _refused(pattern, f"\\{following}")


def _group(pattern: str, place: int) -> tuple[str, int]:
    """Translate the beginning of a group; also returns the position after it."""
    if pattern.startswith("(?:", place):
        return "(?:", place + 3
    if pattern.startswith("(?", place) or pattern.startswith("(*", place):
        raise _refused(pattern, pattern[place : place + 4])
    return "(", place + 1


def _class(pattern: str, place: int) -> tuple[str, int]:
    """Translate the character class at a position; also returns the position after it."""
    start = place
    place += 1
    parts = ["["]
    if pattern[place : place + 1] == "^":
        parts.append("^")
        place += 1
    first = place  # a ] at this position is refused
    while pattern[place : place + 1] != "]" or place == first:
        character = pattern[place : place + 1]
        if not character or character == "[" or pattern.startswith("&&", place) or (character == "]" and place == first):
            raise _refused(pattern, f"the class {pattern[start : start + 20]}")
        if character == "\\":
            following = pattern[place + 1 : place + 2]
            if following in _CLASSES and following:
                if pattern[place + 2 : place + 3] == "-" and pattern[place + 3 : place + 4] != "]":
                    raise _refused(pattern, f"\\{following}- in a class")
                parts.append(_CLASSES[following])
            elif following in _CONTROLS | _ORDINARY_ESCAPES and following:
                parts.append(" " if following == " " else "\\" + following)
            else:
                raise _refused(pattern, f"\\{following} in a class")
            place += 2
            continue
        parts.append("\\^" if character == "^" else character)
        place += 1
    return "".join(parts) + "]", place + 1
