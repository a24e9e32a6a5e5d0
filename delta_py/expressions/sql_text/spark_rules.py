"""Checks the SQL text of a table's rule before Spark computes it: SQL text -> checked text that Spark may compute.

    checked = checked_sql("hash(id) % 2 = 0", schema)
    checked.text       # ((system.builtin.`hash`(`id`) % 2) = 0)

A table comes from somebody else, and so does the text of its rules: it may be hostile. No part of it goes to Spark as it is
written. pydelta's parser reads it. Each node of the tree must be of a kind that is printed here, each function in a list of
built-ins that depend only on their arguments, each column in the schema. Spark gets the text that is printed from that tree:

- functions as `system.builtin.name`, which functions of the session or of a catalog cannot replace; this includes BETWEEN,
  which Spark looks up as a function;
- names in backticks; texts with characters other than letters, digits and blanks as bytes in hexadecimal, so that nothing depends
  on the settings of Spark's parser, which replaces `${...}` by environment variables in any text, even in names in backticks;
- lambda variables under names that this module chooses, and parentheses around every operator.

Pure: text in, text out. Imported only if there is such a rule.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from sqlglot import exp

from delta_py.errors import ExpressionError
from delta_py.expressions.clock import CLOCK_FUNCTIONS
from delta_py.expressions.evaluation_errors import not_an_expression, not_supported
from delta_py.expressions.sql_text import literals
from delta_py.expressions.sql_text.dialect import parse_syntax_tree
from delta_py.expressions.sql_text.sql_types import data_type_of
from delta_py.protocol.collations import is_collated
from delta_py.types.names import quoted
from delta_py.types.schema import TIMESTAMP, ArrayType, DataType, MapType, Path, StructType, find_path, type_name

_MAX_DEPTH = 100
_MAX_CHARACTERS = 100_000
_VARIABLE_PREFIX = "__pydelta_x"

# Built-ins of Spark 4.2 and later whose value depends only on their arguments (and on the session's settings, such as its time
# zone). No function that runs code by its name, reads a file or its name, the clock, the user, a key, a random number, or XML.
_FUNCTION_NAMES = """
    coalesce nvl ifnull nvl2 nullif if greatest least between isnull isnotnull isnan nanvl equal_null typeof
    tinyint smallint int bigint float double decimal string boolean binary date timestamp
    hash xxhash64 md5 sha sha1 sha2 crc32

    abs acos acosh asin asinh atan atan2 atanh bin bit_count bit_get bround cbrt ceil ceiling conv cos cosh cot csc degrees e exp
    expm1 factorial floor getbit hypot ln log log10 log1p log2 mod negative pi pmod positive pow power radians rint round sec
    shiftleft shiftright shiftrightunsigned sign signum sin sinh sqrt tan tanh try_add try_divide try_mod try_multiply
    try_subtract width_bucket

    ascii base64 bit_length btrim char char_length character_length chr concat concat_ws contains decode elt encode endswith
    find_in_set get_json_object hex initcap instr json_array_length json_object_keys lcase left len length levenshtein locate
    lower lpad ltrim luhn_check octet_length overlay regexp regexp_count regexp_extract regexp_extract_all regexp_instr
    regexp_like regexp_replace regexp_substr repeat replace reverse right rlike rpad rtrim soundex space split split_part
    startswith substr substring substring_index translate trim ucase unbase64 unhex upper

    add_months date_add date_diff date_format date_from_unix_date date_part date_sub date_trunc dateadd datediff datepart day
    dayname dayofmonth dayofweek dayofyear from_unixtime from_utc_timestamp hour last_day make_date make_dt_interval
    make_interval make_timestamp make_timestamp_ltz make_timestamp_ntz make_ym_interval minute month monthname months_between
    next_day quarter second timestamp_micros timestamp_millis timestamp_seconds to_date to_timestamp to_timestamp_ltz
    to_timestamp_ntz to_unix_timestamp to_utc_timestamp trunc try_to_timestamp unix_date unix_micros unix_millis unix_seconds
    unix_timestamp weekday weekofyear year

    array array_append array_compact array_contains array_distinct array_except array_insert array_intersect array_join array_max
    array_min array_position array_prepend array_remove array_size array_sort array_union arrays_overlap arrays_zip cardinality
    element_at flatten get map map_concat map_contains_key map_entries map_from_arrays map_from_entries map_keys map_values
    named_struct size slice sort_array str_to_map struct try_element_at

    aggregate exists filter forall map_filter map_zip_with reduce transform transform_keys transform_values zip_with
"""
FUNCTIONS = frozenset(_FUNCTION_NAMES.split())
# Without arguments they read the clock.
_CLOCK_IF_WITHOUT_ARGUMENTS = frozenset({"unix_timestamp", "to_unix_timestamp"})
# For defaults, which are computed once per statement: functions that read the clock or the session.
_USER_FUNCTIONS = frozenset({"current_user", "session_user", "user"})
_STATEMENT_FUNCTIONS = frozenset(
    {*CLOCK_FUNCTIONS, "now", "curdate", *_USER_FUNCTIONS, "current_catalog", "current_database", "current_schema", "version"}
)
_FUNCTIONS_WITHOUT_PARENTHESES = CLOCK_FUNCTIONS | _USER_FUNCTIONS  # functions that may be called without them

_INFIX: Mapping[type[exp.Expression], str] = {
    **{exp.EQ: "=", exp.NEQ: "<>", exp.NullSafeEQ: "<=>", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">="},
    **{exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/", exp.Mod: "%", exp.IntDiv: "DIV", exp.DPipe: "||"},
    **{exp.BitwiseAnd: "&", exp.BitwiseOr: "|", exp.BitwiseXor: "^", exp.And: "AND", exp.Or: "OR", exp.RegexpLike: "RLIKE"},
}
_PREFIX: Mapping[type[exp.Expression], str] = {exp.Not: "NOT", exp.Neg: "-", exp.BitwiseNot: "~"}
_SHIFTS: Mapping[type[exp.Expression], str] = {exp.BitwiseLeftShift: "shiftleft", exp.BitwiseRightShift: "shiftright"}
_LITERAL_PREFIXES = {
    **{"DATE": "DATE", "TIMESTAMP": "TIMESTAMP_LTZ"},
    **{"TIMESTAMP_LTZ": "TIMESTAMP_LTZ", "TIMESTAMP_NTZ": "TIMESTAMP_NTZ"},
}

_PLAIN_TEXT = re.compile(r"[A-Za-z0-9 _.,:/+%-]*", re.ASCII)
_HEXADECIMAL = re.compile(r"[0-9A-Fa-f]*", re.ASCII)
_TIME = re.compile(r"[+-]?[0-9][A-Za-z0-9_:.+/ -]*", re.ASCII)  # excludes `now` and similar words, which read the clock
_EXTRACT_FIELD = re.compile(r"[A-Z_]+", re.ASCII)
_INTERVAL_PART = r"-?(?:[0-9]+(?:\.[0-9]+)?|'[A-Za-z0-9.: +-]*')(?: [A-Z]+(?: TO [A-Z]+)?)?"
_INTERVAL = re.compile(f"{_INTERVAL_PART}(?: {_INTERVAL_PART})*", re.ASCII)


@dataclass(frozen=True, slots=True)
class CheckedSql:
    """text: for Spark, to be resolved against a DataFrame with the schema's columns. columns: the paths in the text, in the
    schema's spelling, without duplicates, sorted."""

    text: str
    columns: tuple[Path, ...]


def checked_sql(text: str, schema: StructType) -> CheckedSql:
    """The expression in `text` over rows of the schema, in a form that is safe for Spark.

    Raises ExpressionError, with the name, for something that is not allowed or is not an expression; SchemaMismatchError
    (DELTA_COLUMN_NOT_FOUND_IN_SCHEMA) for an unknown column.
    """
    printer = _Printer(text, schema)
    return CheckedSql(_print_text(printer, text), tuple(sorted(printer.columns)))


def checked_default(text: str) -> str:
    """The value of a column's default, in a form that is safe for Spark: an expression without columns, which may read the
    clock and the session (current_date(), current_user() and similar functions).

    Raises as checked_sql.
    """
    return _print_text(_Printer(text, StructType(()), allows_session=True), text)


def _print_text(printer: _Printer, text: str) -> str:
    """The text for Spark. Raises ExpressionError if the text, or the one for Spark, is too long or nested too deeply."""
    if len(text) > _MAX_CHARACTERS:
        raise _too_large_error()
    try:
        printed = printer.print(parse_syntax_tree(text))
    except RecursionError as error:
        raise _too_large_error() from error
    if len(printed) > _MAX_CHARACTERS:
        raise _too_large_error()
    return printed


def spark_type_name(data_type: DataType) -> str:
    """The name of a simple type in Spark's SQL, independent of the session's meaning of TIMESTAMP. Raises
    ExpressionError for others."""
    if isinstance(data_type, StructType | ArrayType | MapType):
        raise not_supported(f"A cast to {type_name(data_type)[:40]}")
    return "TIMESTAMP_LTZ" if data_type == TIMESTAMP else type_name(data_type).upper()


def type_text(data_type: DataType) -> str:
    """The name of any type in Spark's SQL, independent of the session's meaning of TIMESTAMP."""
    match data_type:
        case StructType(fields):
            return f"STRUCT<{', '.join(f'{_quote_safely(f.name)}: {type_text(f.data_type)}' for f in fields)}>"
        case ArrayType(element, _):
            return f"ARRAY<{type_text(element)}>"
        case MapType(key, value, _):
            return f"MAP<{type_text(key)}, {type_text(value)}>"
    return spark_type_name(data_type)


def null_if_empty(column: str) -> str:
    """The value of a column of texts or bytes, null if it is empty. Raises ExpressionError as checked_sql."""
    name = _quote_safely(column)
    return f"CASE WHEN system.builtin.`length`({name}) > 0 THEN {name} END"


class _Printer:
    """Prints the syntax tree of one text for Spark, and refuses everything that is not allowed.

    sql: the text, for errors. schema: of the rows; only its columns are allowed. allows_session: whether functions of the clock
    and of the session are allowed. columns: the paths of the columns that were printed so far.
    """

    def __init__(self, sql: str, schema: StructType, *, allows_session: bool = False) -> None:
        self._sql, self._schema, self._allows_session = sql, schema, allows_session
        self._variables: dict[str, str] = {}  # of the lambdas around the node: lower-case name, printed name
        self._depth = self._node_count = 0
        self.columns: set[Path] = set()

    def print(self, node: exp.Expression) -> str:
        """The text of the expression for Spark. Its depth and number of parts are limited."""
        self._depth += 1
        self._node_count += 1
        if self._depth > _MAX_DEPTH or self._node_count > _MAX_CHARACTERS:
            raise _too_large_error()
        printed = self._print_node(node)
        self._depth -= 1
        return printed

    def _print_node(self, node: exp.Expression) -> str:
        """The work of `print`, without its limits. Raises ExpressionError for a node of a kind that is not allowed."""
        node_type = type(node)
        if node_type in _INFIX:
            return self._print_infix(node)
        if node_type in _PREFIX:
            return f"({_PREFIX[node_type]} {self.print(node.this)})"
        if node_type in _SHIFTS:
            return self._print_function(_SHIFTS[node_type], [node.this, node.expression])
        for print_part in (self._print_value, self._print_predicate, self._print_grammar):
            printed = print_part(node)
            if printed is not None:
                return printed
        raise self._refusal_error(node)

    def _print_list(self, nodes: Iterable[exp.Expression]) -> str:
        return ", ".join(self.print(node) for node in nodes)

    def _refusal_error(self, node: exp.Expression) -> ExpressionError:
        return not_supported(f"{node.key.upper()} in a rule", "It is not among what Spark may compute for a table's rule.")

    def _print_infix(self, node: exp.Expression) -> str:
        """A chain of one operator, which may be long, without recursion: all operators bind from the left, as in Spark."""
        node_type, operands = type(node), []
        while type(node) is node_type:
            operands.append(node.expression)
            node = node.this
        return f"({f' {_INFIX[node_type]} '.join(self.print(operand) for operand in (node, *reversed(operands)))})"

    # ------------------------------------------------------------ literals and names

    def _print_value(self, node: exp.Expression) -> str | None:
        """The text of a literal, an interval, a column or a field; None for other nodes."""
        match node:
            case exp.Null():
                return "NULL"
            case exp.Boolean():
                return "true" if node.this else "false"
            case exp.Literal():
                return _print_text_literal(node.this) if node.is_string else self._print_number(node.this)
            case exp.Introducer():
                return self._print_prefixed_literal(node.this.name.upper(), node.expression.this)
            case exp.Interval():
                if not _INTERVAL.fullmatch(node.this.name):
                    raise not_an_expression(self._sql, "an INTERVAL cannot be read")
                return f"(INTERVAL {node.this.name})"
            case exp.Column():
                return self._print_name(node.parts)
            case exp.Identifier():
                return self._print_name([node])
            case exp.Dot():
                return self._print_field(node)
        return None

    def _print_number(self, number_text: str) -> str:
        """The number as written, in parentheses if it has a sign. Raises ExpressionError if it is no number of Spark's."""
        literals.parse_number(self._sql, number_text)
        if not literals.NUMBER.fullmatch(number_text.removeprefix("-")):
            raise not_an_expression(self._sql, f"{number_text[:40]!r} is no number")
        return f"({number_text})" if number_text.startswith("-") else number_text

    def _print_prefixed_literal(self, prefix: str, text: str) -> str:
        """A text with a word before it: X'1F', DATE '2024-01-01', ..."""
        if prefix == "X" and _HEXADECIMAL.fullmatch(text):
            return f"X'{text}'"
        if prefix not in _LITERAL_PREFIXES or not _TIME.fullmatch(text):
            raise not_an_expression(self._sql, f"{text[:40]!r} is no constant of {prefix}")
        return f"{_LITERAL_PREFIXES[prefix]}'{text}'"

    def _print_name(self, parts: Iterable[exp.Expr]) -> str:
        """A lambda variable, or else a column, and fields in it."""
        names = tuple(self._name(part) for part in parts)
        if self._allows_session and len(names) == 1 and names[0].lower() in _FUNCTIONS_WITHOUT_PARENTHESES:
            return self._print_function(names[0], [])
        variable = self._variables.get(names[0].lower())
        if variable is not None:
            return ".".join([variable, *(_quote_safely(name) for name in names[1:])])
        fields = find_path(self._schema, names)
        if is_collated(fields[-1]):
            raise not_supported(f"Column {'.'.join(names)} with a collation")
        path = tuple(f.name for f in fields)
        self.columns.add(path)
        return ".".join(_quote_safely(name) for name in path)

    def _print_field(self, node: exp.Dot) -> str:
        """A field of another expression's result; for a column, the field is part of the column's path."""
        parts: list[exp.Expression] = []
        container: exp.Expression = node
        while isinstance(container, exp.Dot):
            parts.append(container.expression)
            container = container.this
        if isinstance(container, exp.Column | exp.Identifier):
            column_parts = container.parts if isinstance(container, exp.Column) else [container]
            return self._print_name([*column_parts, *reversed(parts)])
        return ".".join([f"({self.print(container)})", *(_quote_safely(self._name(part)) for part in reversed(parts))])

    def _name(self, node: exp.Expr) -> str:
        """The text of a name, without backticks."""
        if not isinstance(node, exp.Identifier):
            raise not_supported(f"{node.key.upper()} in the place of a name", "A rule names columns, fields and built-ins.")
        return str(node.this)

    # ------------------------------------------------------------ predicates and grammar

    def _print_predicate(self, node: exp.Expression) -> str | None:
        """The text of BETWEEN, IN, IS, LIKE or ILIKE; None for other nodes."""
        match node:
            case exp.Between():
                return self._print_function("between", [node.this, node.args["low"], node.args["high"]])
            case exp.In():
                if not node.expressions:
                    raise not_supported("IN without a list of values")
                return f"({self.print(node.this)} IN ({self._print_list(node.expressions)}))"
            case exp.Is():
                if node.expression.name not in ("NULL", "TRUE", "FALSE", "UNKNOWN"):
                    raise self._refusal_error(node)
                return f"({self.print(node.this)} IS {node.expression.name})"
            case exp.Escape():
                escape = node.expression.this if isinstance(node.expression, exp.Literal) else ""
                if len(escape) != 1 or not (_PLAIN_TEXT.fullmatch(escape) or escape in "#!$^~|@"):
                    raise not_supported("This ESCAPE")
                return f"({self._print_like(node.this)} ESCAPE '{escape}')"
            case exp.Like() | exp.ILike():
                return f"({self._print_like(node)})"
        return None

    def _print_like(self, node: exp.Expression) -> str:
        if not isinstance(node, exp.Like | exp.ILike):
            raise self._refusal_error(node)
        word = "ILIKE" if isinstance(node, exp.ILike) else "LIKE"
        return f"{self.print(node.this)} {word} {self.print(node.expression)}"

    def _print_grammar(self, node: exp.Expression) -> str | None:
        """The text of calls, lambda functions, CASE, casts and other functions with their own grammar; None for other nodes."""
        match node:
            case exp.Paren():
                return self.print(node.this)
            case exp.Anonymous():
                return self._print_function(str(node.this if isinstance(node.this, str) else node.name), node.expressions)
            case exp.Lambda():
                return self._print_lambda(node)
            case exp.Bracket() if len(node.expressions) == 1 and not isinstance(node.expressions[0], exp.Slice):
                return f"{self.print(node.this)}[{self.print(node.expressions[0])}]"
            case exp.Case():
                return self._print_case(node)
            case exp.Cast() if not any(node.args.get(extra) for extra in ("format", "action", "default")):
                name = "try_cast" if isinstance(node, exp.TryCast) else "cast"
                return f"{name}({self.print(node.this)} AS {type_text(data_type_of(self._sql, node.args['to']))})"
        return self._print_function_with_grammar(node)

    def _print_function_with_grammar(self, node: exp.Expression) -> str | None:
        """The text of EXTRACT, TRIM, SUBSTRING or POSITION; None for other nodes."""
        match node:
            case exp.Extract() if _EXTRACT_FIELD.fullmatch(node.this.name.upper()):
                return f"system.builtin.`date_part`('{node.this.name.upper()}', {self.print(node.expression)})"
            case exp.Trim():
                return self._print_trim(node)
            case exp.Substring():
                return self._print_function(
                    "substring", filter(None, [node.this, node.args.get("start"), node.args.get("length")])
                )
            case exp.StrPosition():
                return self._print_function("locate", filter(None, [node.args["substr"], node.this, node.args.get("position")]))
        return None

    def _print_trim(self, node: exp.Trim) -> str:
        name = {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(node.args.get("position") or "", "trim")
        characters = node.args.get("expression")  # Spark's functions take the characters first
        return self._print_function(name, [node.this] if characters is None else [characters, node.this])

    def _print_case(self, node: exp.Case) -> str:
        words = ["CASE", *([] if node.this is None else [self.print(node.this)])]
        for case in node.args["ifs"]:
            words += ["WHEN", self.print(case.this), "THEN", self.print(case.args["true"])]
        default = node.args.get("default")
        return " ".join([*words, *([] if default is None else ["ELSE", self.print(default)]), "END"])

    # ------------------------------------------------------------ functions

    def _print_function(self, name: str, arguments: Iterable[exp.Expression]) -> str:
        """A call of a built-in of Spark. Raises ExpressionError for a function that is not in the list."""
        lower_name, argument_list = name.lower(), list(arguments)
        if self._allows_session and lower_name in _STATEMENT_FUNCTIONS and not argument_list:
            return f"system.builtin.`{lower_name}`()"
        if lower_name not in FUNCTIONS or (lower_name in _CLOCK_IF_WITHOUT_ARGUMENTS and not argument_list):
            raise not_supported(f"The function {name[:60]}", "It is not among those that Spark may compute for a table's rule.")
        return f"system.builtin.`{lower_name}`({self._print_list(argument_list)})"

    def _print_lambda(self, node: exp.Lambda) -> str:
        """`x -> ...` or `(x, y) -> ...`, with names that this module chooses for the variables."""
        with self._name_variables([self._name(parameter) for parameter in node.expressions]) as variables:
            names = variables[0] if len(variables) == 1 else f"({', '.join(variables)})"
            return f"{names} -> {self.print(node.this)}"

    @contextmanager
    def _name_variables(self, names: list[str]) -> Iterator[list[str]]:
        """Let a lambda function's variables have names that no column has, inside the block. Yields these names."""
        outer_variables, lower_names = self._variables, [name.lower() for name in names]
        if len(set(lower_names)) < len(lower_names):
            raise not_an_expression(self._sql, "a lambda function has two variables of one name")
        printed_names = [f"{_VARIABLE_PREFIX}{self._depth}_{number}" for number in range(len(lower_names))]
        if any(self._schema.find(name) is not None for name in printed_names):
            raise not_supported(f"A column whose name begins with {_VARIABLE_PREFIX}")
        self._variables = {**outer_variables, **dict(zip(lower_names, printed_names, strict=True))}
        yield printed_names
        self._variables = outer_variables


def _print_text_literal(value: str) -> str:
    """Bytes in hexadecimal for all text that Spark's parser might read as something else."""
    return f"'{value}'" if _PLAIN_TEXT.fullmatch(value) else f"cast(X'{value.encode().hex().upper()}' AS STRING)"


def _quote_safely(name: str) -> str:
    """The name in backticks. Raises ExpressionError for a name in which Spark's parser would replace a part."""
    if "${" in name:
        raise not_supported(f"The name {name[:60]!r} in a rule that Spark computes", "Spark replaces ${...} in it.")
    return quoted(name)


def _too_large_error() -> ExpressionError:
    return ExpressionError(
        f"The expression is nested more than {_MAX_DEPTH} levels deep, or too long. Split it.",
        error_class="PARSE_SYNTAX_ERROR",
        sql_state="42601",
    )
