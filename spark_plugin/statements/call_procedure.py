"""CALL pydelta.system.<procedure>(...), run as the statement that does the same.

    CALL pydelta.system.vacuum(table => 'pydelta.`/data/events`', dry_run => true)      -- VACUUM ... DRY RUN

In a classic session the catalog passes the call on, wherever the call is written (TableProcedure.java, through sql_requests.py).
Over Spark Connect the server has no Python to call: the client reads the statement, and leaves to the server what it cannot read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from delta_py.errors import InvalidOptionError
from delta_py.types.names import split_name
from spark_plugin.data_source import FORMAT
from spark_plugin.internals.session_adapter import adapter_of
from spark_plugin.sql import grammar
from spark_plugin.sql.grammar import Utility, Version
from spark_plugin.sql.syntax import SyntaxFault, TableName, Words
from spark_plugin.sql.targets import our_formats
from spark_plugin.sql_catalog.procedures import NAMESPACE, PROCEDURES, Parameter, Procedure
from spark_plugin.sql_router import Statement
from spark_plugin.statements.delta_statements import NotOurs, carry_out
from spark_plugin.statements.other_tables import answer_by_name

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def call_procedure(spark: SparkSession, request: Mapping[str, Any]) -> DataFrame:
    """Run the statement of a call. request: `procedure`, the procedure's name, and `arguments`, its arguments by the names of its
    parameters. Raises the errors of DeltaTable's methods."""
    utility = utility_of(request["procedure"], request["arguments"])
    try:
        return carry_out(spark, utility)
    except NotOurs as missing:
        return answer_by_name(spark, utility, missing.table_name)


def run_call(spark: SparkSession, statement: Statement) -> DataFrame | None:
    """Run CALL of a Spark Connect client. Returns None, and does nothing, in a classic session, for a procedure that is not ours,
    and for arguments that do not fit its parameters: the server reports the error."""
    if adapter_of(spark).is_driver:
        return None
    try:
        request = parse_call(statement.text, statement.args)
    except SyntaxFault:
        return None
    return call_procedure(spark, request) if request is not None and request["catalog"] in our_formats(spark) else None


def parse_call(text: str, args: Any = None) -> Mapping[str, Any] | None:
    """Return the request of call_procedure, which also has the `catalog` of the procedure's name, in lower case. Returns None for
    an unknown procedure. args: as in Statement. Raises SyntaxFault."""
    words = Words(text, args)
    words.expect("CALL")
    catalog, *parts = (part.lower() for part in words.name())
    procedure = PROCEDURES.get(parts[1]) if len(parts) == 2 and parts[0] == NAMESPACE else None
    if procedure is None:
        return None
    arguments = _arguments(words, procedure)
    words.end()
    return {"catalog": catalog, "procedure": procedure.name, "arguments": arguments}


def _arguments(words: Words, procedure: Procedure) -> dict[str, Any]:
    """Parse the arguments, and return a value for each parameter of the procedure. As in Spark, arguments by position come before
    those by name (`table => 'x'`)."""
    by_name = {parameter.name: parameter for parameter in procedure.parameters}
    arguments: dict[str, Any] = {}
    is_named = False
    words.expect("(")
    while not words.take(")"):
        if arguments:
            words.expect(",")
        parameter = None if is_named or len(arguments) == len(by_name) else procedure.parameters[len(arguments)]
        if words.at("=>", ahead=1):
            is_named, parameter = True, by_name.get(words.part().lower())
            words.expect("=>")
        if parameter is None or parameter.name in arguments:
            words.fault("expected an argument of the procedure")
        arguments[parameter.name] = _argument(words, parameter)
    required_names = [parameter.name for parameter in procedure.parameters if parameter.default is None]
    missing = [name for name in required_names if name not in arguments]
    if missing:
        words.fault(f"expected the argument {missing[0]}")
    defaults = {parameter.name: _DEFAULTS[parameter.default or "NULL"] for parameter in procedure.parameters}
    return {name: arguments.get(name, default) for name, default in defaults.items()}


_DEFAULTS = {"NULL": None, "false": False, "'symlink_format_manifest'": "symlink_format_manifest"}
"""The default values of parameters, by their SQL."""


def _argument(words: Words, parameter: Parameter) -> Any:
    """Parse one value: a constant, ARRAY(value, ...), or MAP(key, value, ...)."""
    for word in ("ARRAY", "MAP"):
        if words.take(word, "("):
            values = [] if words.at(")") else [words.literal()]
            while words.take(","):
                values.append(words.literal())
            words.expect(")")
            if word == "MAP" and len(values) % 2:
                words.fault("expected a value for each key")
            # The values of MAP are its keys and values in turn.
            value = values if word == "ARRAY" else dict(zip(values[::2], values[1::2], strict=True))
            return _checked_value(words, value, parameter)
    return _checked_value(words, words.literal(), parameter)


def _checked_value(words: Words, value: Any, parameter: Parameter) -> Any:
    """Return the value if it is null or has the parameter's type. Raises SyntaxFault otherwise. A boolean is no number, and
    collections have only texts and nulls."""
    has_type = isinstance(value, _TYPES[parameter.type]) and (parameter.type == "BOOLEAN" or not isinstance(value, bool))
    is_too_large = isinstance(value, int) and not -(2**63) <= value < 2**63
    elements: Sequence[Any] = ()
    if isinstance(value, dict):
        elements = (*value, *value.values())
    elif isinstance(value, list):
        elements = value
    has_only_texts = all(element is None or isinstance(element, str) for element in elements)
    if value is not None and not (has_type and not is_too_large and has_only_texts):
        words.fault(f"expected a value of the type {parameter.type}")
    return value


_TYPES: Mapping[str, tuple[type, ...]] = {
    "STRING": (str,),
    "BOOLEAN": (bool,),
    "BIGINT": (int,),
    "DOUBLE": (int, float),
    "ARRAY<STRING>": (list,),
    "MAP<STRING, STRING>": (dict,),
}


def utility_of(procedure: str, arguments: Mapping[str, Any]) -> Utility:
    """Return the statement that does the same as a call. arguments: a value for each parameter, None for one that the call omits.
    Raises InvalidOptionError."""
    for parameter in PROCEDURES[procedure].parameters:
        value = arguments[parameter.name]
        elements = value.values() if isinstance(value, Mapping) else value if isinstance(value, Sequence) else ()
        if (value is None and parameter.default is None) or any(element is None for element in elements):
            why = f"the argument {parameter.name} is null, or a part of it. Nothing was done. Say what is meant."
            raise _refusal(procedure, why)
    return _REQUESTS[procedure](arguments)


def table_name(text: str, path_format: str = FORMAT) -> TableName:
    """Parse a name of one or more parts, or a path: a text with a slash before any backtick is a path and is not changed."""
    if "/" in text.partition("`")[0]:
        return TableName((path_format, text))
    parts = split_name(text)
    if not all(parts):
        raise InvalidOptionError(f"{text!r} names no table, and no path. Nothing was done. Check the name.", option="table")
    return TableName(parts)


def _refusal(procedure: str, why: str) -> InvalidOptionError:
    return InvalidOptionError(f"CALL {FORMAT}.system.{procedure}: {why}", option=procedure)


# ---------------------------------------------------------------- the statements


# Each function takes the arguments of a call, by the names of the procedure's parameters, and returns the same statement.


def _table(arguments: Mapping[str, Any]) -> TableName:
    return table_name(arguments["table"])


def _optimize(arguments: Mapping[str, Any]) -> Utility:
    z_order = tuple(arguments["zorder_by"] or ())
    return grammar.Optimize(_table(arguments), bool(arguments["full"]), arguments["where"], z_order)


def _vacuum(arguments: Mapping[str, Any]) -> Utility:
    inventory = arguments["inventory"]
    return grammar.Vacuum(
        _table(arguments),
        arguments["lite"],
        None if inventory is None else table_name(inventory),
        arguments["retain_hours"],
        bool(arguments["dry_run"]),
    )


def _history(arguments: Mapping[str, Any]) -> Utility:
    return grammar.History(_table(arguments), arguments["limit"])


def _restore(arguments: Mapping[str, Any]) -> Utility:
    to = _version("restore", arguments)
    if to == Version():
        raise _refusal("restore", "neither a version nor a timestamp is given. Nothing was restored. Give one of them.")
    return grammar.Restore(_table(arguments), to, arguments["ignore_missing_files"])


def _version(procedure: str, arguments: Mapping[str, Any]) -> Version:
    """Return the version that the arguments name; the newest if they name none. Raises InvalidOptionError if they have both a
    version and a timestamp."""
    version, timestamp = arguments["version"], arguments["timestamp"]
    if version is not None and timestamp is not None:
        raise _refusal(procedure, "both a version and a timestamp are given. Nothing was done. Leave one of them out.")
    return Version(version, timestamp)


def _clone(arguments: Mapping[str, Any]) -> Utility:
    return grammar.Clone(
        table_name(arguments["target"]),
        _table(arguments),
        bool(arguments["shallow"]),
        _version("clone", arguments),
        replaces=bool(arguments["replace"]),
        properties=arguments["properties"] or {},
        location=arguments["location"],
        partitions=arguments["partitioned_by"],
    )


def _convert(arguments: Mapping[str, Any]) -> Utility:
    return grammar.Convert(table_name(arguments["table"], "parquet"), partitions=arguments["partitioned_by"])


_REQUESTS: Mapping[str, Callable[[Mapping[str, Any]], Utility]] = {
    "optimize": _optimize,
    "vacuum": _vacuum,
    "history": _history,
    "detail": lambda arguments: grammar.Detail(_table(arguments)),
    "restore": _restore,
    "generate": lambda arguments: grammar.Generate(_table(arguments), arguments["mode"]),
    "reorg": lambda arguments: grammar.Reorg(_table(arguments), arguments["where"]),
    "fsck": lambda arguments: grammar.Fsck(_table(arguments), bool(arguments["dry_run"]), bool(arguments["check_data"])),
    "clone": _clone,
    "convert": _convert,
    "add_constraint": lambda arguments: grammar.AddConstraint(_table(arguments), arguments["name"], arguments["check"]),
    "drop_constraint": lambda arguments: grammar.DropConstraint(
        _table(arguments), arguments["name"], bool(arguments["if_exists"])
    ),
    "add_feature": lambda arguments: grammar.AddFeature(_table(arguments), arguments["feature"]),
    "drop_feature": lambda arguments: grammar.DropFeature(
        _table(arguments), arguments["feature"], bool(arguments["truncate_history"])
    ),
    "cluster_by": lambda arguments: grammar.ClusterBy(_table(arguments), tuple(arguments["columns"])),
    "sync_identity": lambda arguments: grammar.SyncIdentity(_table(arguments), arguments["column"]),
    "create_index": lambda arguments: grammar.CreateIndex(_table(arguments), arguments["name"], (arguments["column"],)),
    "drop_index": lambda arguments: grammar.DropIndex(_table(arguments), arguments["name"]),
}
