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
        return answer_by_name(spark, utility, missing.named)


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
            return _checked(words, values if word == "ARRAY" else dict(zip(values[::2], values[1::2], strict=True)), parameter)
    return _checked(words, words.literal(), parameter)


def _checked(words: Words, value: Any, parameter: Parameter) -> Any:
    """Return the value if it has the parameter's type. A boolean is no number, and collections have only texts and nulls."""
    fits = isinstance(value, _TYPES[parameter.type]) and (parameter.type == "BOOLEAN" or not isinstance(value, bool))
    fits = fits and not (isinstance(value, int) and not -(2**63) <= value < 2**63)
    parts = (*value, *value.values()) if isinstance(value, dict) else value if isinstance(value, list) else ()
    if value is not None and not (fits and all(part is None or isinstance(part, str) for part in parts)):
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
        parts = value.values() if isinstance(value, Mapping) else value if isinstance(value, Sequence) else ()
        if (value is None and parameter.default is None) or any(part is None for part in parts):
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
    "detail": lambda given: grammar.Detail(_table(given)),
    "restore": _restore,
    "generate": lambda given: grammar.Generate(_table(given), given["mode"]),
    "reorg": lambda given: grammar.Reorg(_table(given), given["where"]),
    "fsck": lambda given: grammar.Fsck(_table(given), bool(given["dry_run"]), bool(given["check_data"])),
    "clone": _clone,
    "convert": _convert,
    "add_constraint": lambda given: grammar.AddConstraint(_table(given), given["name"], given["check"]),
    "drop_constraint": lambda given: grammar.DropConstraint(_table(given), given["name"], bool(given["if_exists"])),
    "add_feature": lambda given: grammar.AddFeature(_table(given), given["feature"]),
    "drop_feature": lambda given: grammar.DropFeature(_table(given), given["feature"], bool(given["truncate_history"])),
    "cluster_by": lambda given: grammar.ClusterBy(_table(given), tuple(given["columns"])),
    "sync_identity": lambda given: grammar.SyncIdentity(_table(given), given["column"]),
    "create_index": lambda given: grammar.CreateIndex(_table(given), given["name"], (given["column"],)),
    "drop_index": lambda given: grammar.DropIndex(_table(given), given["name"]),
}
