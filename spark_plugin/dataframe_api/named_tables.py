"""Writes to a name of the catalog: saveAsTable, insertInto, and the methods of DataFrame.writeTo.

Each becomes a write to the path of the name (`Save.to`). If the table is new or its columns have changed, its name is entered
into the catalog after the write. The data comes first: if entering the name fails, the table is complete, and CREATE TABLE ...
LOCATION enters it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from pyspark.sql import DataFrame

from delta_py.errors import InvalidOptionError, SchemaMismatchError, TableAlreadyExistsError, TableNotFoundError
from delta_py.storage.addresses import is_name_in_catalog
from delta_py.types.names import split_name
from delta_py.unity.external_tables import LOCATION_OPTION
from spark_plugin.cached_tables import refresh_cached
from spark_plugin.data_source import FORMAT
from spark_plugin.dataframe_api import catalog
from spark_plugin.dataframe_api.batch_save import Save
from spark_plugin.dataframe_api.catalog import Entry
from spark_plugin.dml.analyzer import analyzer_of
from spark_plugin.dml.inserted_columns import TableColumns, table_column, with_table_columns
from spark_plugin.dml.jobs import load_newest
from spark_plugin.dml.store_assignment import StoreAssignment, overflow_as_delta_error
from spark_plugin.merge.matching import Matching
from spark_plugin.options.read_options import local_path
from spark_plugin.options.settings import conf


def save_as_table(save: Save, name: str) -> None:
    """Write to a name as saveAsTable does. mode error: an existing name is an error; ignore: an existing name means no write;
    append and overwrite: as save(path).

    Columns are matched by name. Raises the same as `save(path)`; TableAlreadyExistsError (TABLE_OR_VIEW_ALREADY_EXISTS).
    """
    path = catalog.handled_path(save.spark, name)
    if path is not None:
        _at_location(save, path).to(path)
        return
    entry = catalog.find_stored(save.spark, name)
    if entry is None:
        create(save, name)
    elif save.mode == "ignore":
        return
    elif save.mode in ("append", "overwrite"):
        write_to_entry(save, entry)
    else:
        raise catalog.name_exists_error(entry)


def _at_location(save: Save, path: str) -> Save:
    """Return the save to a path. For a name in Unity Catalog the option `path` is the location of an external table."""
    location = save.option("path")
    if location is None or not is_name_in_catalog(path):
        return save
    return save.without("path").with_options(**{LOCATION_OPTION: location})


def create(save: Save, name: str) -> None:
    """Write a table for a new name, and enter the name into the catalog. The option `path` may name an existing table, and the
    mode says what happens to it. Without this option the table is made in the database's directory. There must be none there
    yet, unless the mode is overwrite. A new table in an empty place there is a managed one."""
    spark, path_option = save.spark, save.option("path")
    path = catalog.new_table_path(spark, name, path_option)
    save, managed = save.without("path"), path_option is None and catalog.may_be_managed(spark, path)
    if path_option is not None or save.mode == "overwrite":
        save.to(path)
    else:
        try:
            replace(save, mode="error").to(path)
        except TableAlreadyExistsError as error:
            raise catalog.path_exists_error(name, path) from error
    catalog.enter_new(spark, name, path, save.provider, managed=managed)


def define_with_rows(save: Save, name: str, kind: str) -> None:
    """Run a statement AS SELECT. kind: create, createIfNotExists, replace or createOrReplace. Without a path the table is a
    managed one.

    Raises TableAlreadyExistsError (TABLE_OR_VIEW_ALREADY_EXISTS), TableNotFoundError (DELTA_TABLE_NOT_FOUND)."""
    entry = catalog.find_stored(save.spark, name)
    if entry is None and kind == "replace":
        raise _no_table_error(name)
    if entry is None:
        # The mode is `ignore` for IF NOT EXISTS. The name does not exist, so a table at its path is not the one that is meant.
        create(replace(save, mode="error") if save.mode == "ignore" else save, name)
    elif kind == "create":
        raise catalog.name_exists_error(entry)
    elif kind != "createIfNotExists":
        write_to_entry(save, entry)
        catalog.refresh(save.spark, entry)


def write_to_entry(save: Save, entry: Entry) -> None:
    """Append to the table of a name, or overwrite it, by the save's mode. Raises InvalidOptionError if the option `path` names
    another place than the entry."""
    path, path_option = entry.writable_path(), save.option("path")
    if path_option is not None and catalog.new_table_path(save.spark, entry.name, local_path(path_option)) != path:
        raise InvalidOptionError(
            f"Table {entry.name} is at {path} and not at {path_option}; nothing was written. Leave the option path out.",
            option="path",
        )
    save.without("path").to(path)
    if _may_change_columns(save):
        catalog.refresh(save.spark, entry)
    refresh_cached(save.spark, entry.name)


def write_to_name(save: Save, name: str) -> None:
    """Do the same as write_to_entry. Raises TableNotFoundError (DELTA_TABLE_NOT_FOUND) if the name does not exist."""
    write_to_entry(save, _existing_entry(save.spark, name))


def _may_change_columns(save: Save) -> bool:
    return _merges_schema(save) or _is_true(save.option("overwriteSchema"))


def _merges_schema(save: Save) -> bool:
    return _is_true(save.option("mergeSchema") or conf(save.spark, "spark.databricks.delta.schema.autoMerge.enabled"))


def _is_true(value: str | None) -> bool:
    return value is not None and value.lower() == "true"


# ---------------------------------------------------------------- insertInto


def insert_into(save: Save, name: str) -> None:
    """Write to a name as insertInto does. Columns, and the fields of structs in them, are matched by position, as in INSERT. mode
    overwrite: replaces all rows, or with partitionOverwriteMode=dynamic the partitions that the rows have; any other mode
    appends.

    Raises SchemaMismatchError (DELTA_INSERT_COLUMN_ARITY_MISMATCH) for another number of columns than the table has; more are
    allowed with mergeSchema.
    """
    entry = _existing_entry(save.spark, name)
    path = entry.writable_path()
    if save.partition_by is not None:
        raise InvalidOptionError(
            "insertInto() can't be used together with partitionBy(): the table has its partitioning. Leave partitionBy out.",
            option="partitionBy",
        )
    table = TableColumns.of(load_newest(save.spark, save.table_path(path)).config)
    columns, data_columns, evolves = table.schema.names, save.frame.columns, _merges_schema(save)
    if len(data_columns) < len(columns) or (len(data_columns) > len(columns) and not evolves):
        raise SchemaMismatchError(
            f"insertInto goes by position: table {name} has {len(columns)} columns ({', '.join(columns)}), the data has "
            f"{len(data_columns)} ({', '.join(data_columns)}). Nothing was written. Select the table's columns in its order.",
            error_class="DELTA_INSERT_COLUMN_ARITY_MISMATCH",
            sql_state="42802",
            table=name,
        )
    mode = "overwrite" if save.mode == "overwrite" else "append"
    matching = save.row_matching() if mode == "overwrite" else None
    check_aligned(() if matching is None else matching.columns, columns, data_columns)
    frame, matching = _in_table_columns(save, table, matching, evolves=evolves)
    with overflow_as_delta_error("CAST_OVERFLOW_IN_TABLE_INSERT"):
        write_to_entry(replace(save, frame=frame, mode=mode, matching=matching), entry)


def _in_table_columns(
    save: Save, table: TableColumns, matching: Matching | None, *, evolves: bool
) -> tuple[DataFrame, Matching | None]:
    """Return the rows as the table's columns, matched by position, and how they match rows of the table (None if they replace no
    matching rows).

    A condition of replaceOn uses the columns and the alias of the data: these columns stay, next to the table's columns.
    """
    frame, rule = save.frame, StoreAssignment.of(save.spark, evolves=evolves)
    names = [*table.schema.names, *frame.columns[len(table.schema.names) :]]
    has_condition = matching is not None and not matching.columns
    if not has_condition:  # new names, because two columns of the frame may have the same one
        frame = frame.toDF(*(f"c{number}" for number in range(len(names))))
    pairs = zip(names, frame.schema.fields, strict=True)
    columns = [table_column(rule, table, name, field, by_name=False) for name, field in pairs]
    if matching is None or not has_condition:
        return frame.select(*(column.alias(name) for name, column in columns)), matching
    frame, values = with_table_columns(frame, columns)
    return frame, replace(matching, source_columns=values)


def check_aligned(matched_columns: Sequence[str], columns: Sequence[str], data_columns: Sequence[str]) -> None:
    """Check that each column of replaceUsing has the same position in the data and in the table: the data is written by position,
    and these columns match rows by name. matched_columns: of replaceUsing. columns: of the table; data_columns: of the data.

    Raises SchemaMismatchError (INSERT_REPLACE_USING_DISALLOW_MISALIGNED_COLUMNS) for one that the data has at another position.
    """
    misaligned = [
        name
        for name in matched_columns
        if (position := _position(data_columns, name)) is not None and position != _position(columns, name)
    ]
    if misaligned:
        raise SchemaMismatchError(
            f"Rows are to be matched by {', '.join(misaligned)}, and they are elsewhere in the data than in the table, which has "
            f"{', '.join(columns)}. Nothing was written. Select the table's columns in its order.",
            error_class="INSERT_REPLACE_USING_DISALLOW_MISALIGNED_COLUMNS",
            sql_state="42802",
            columns=misaligned,
        )


def _position(names: Sequence[str], name: str) -> int | None:
    """Return the position of a column, whose name may have backticks, in any case; None if no column has the name."""
    path = split_name(name.lower())
    return next((position for position, column_name in enumerate(names) if (column_name.lower(),) == path), None)


def _existing_entry(spark: Any, name: str) -> Entry:
    """Return the entry of a name. Raises TableNotFoundError (DELTA_TABLE_NOT_FOUND) if the name does not exist, and the error of
    `load` for a path without a table."""
    entry = catalog.find(spark, name)
    path = catalog.handled_path(spark, name)
    if path is not None:
        spark.read.format(FORMAT).load(path)  # reports the error of a path without a table
    if entry is None:
        raise _no_table_error(name)
    return entry


def _no_table_error(name: str) -> TableNotFoundError:
    return TableNotFoundError(
        f"There is no table {name} in the catalog. Create it with writeTo({name!r}).using('pydelta').create() or "
        f"saveAsTable, or enter one that is there with CREATE TABLE {name} USING pydelta LOCATION '...'.",
        error_class="DELTA_TABLE_NOT_FOUND",
        sql_state="42P01",
        table=name,
    )


# ---------------------------------------------------------------- writeTo


def run_verb(verb: str, save: Save, name: str, condition: Any = None) -> None:
    """Run a method of writeTo: create, replace, createOrReplace, append, overwrite (condition: its Column),
    overwritePartitions."""
    if verb in ("create", "replace", "createOrReplace"):
        _refuse_matching(save)
    match verb:
        case "create":
            save_as_table(replace(save, mode="error"), name)
        case "replace":
            _replace(save, _existing_entry(save.spark, name))
        case "createOrReplace":
            entry = catalog.find_stored(save.spark, name)
            if entry is None:
                create(_with_new_schema(save), name)
            else:
                _replace(save, entry)
        case "append":
            write_to_name(replace(save, mode="append"), name)
        case "overwrite":
            entry = _existing_entry(save.spark, name)
            write_to_entry(overwrite_where(save, entry.writable_path(), condition), entry)
        case "overwritePartitions":
            dynamic_overwrite = replace(save, mode="overwrite").with_options(partitionOverwriteMode="dynamic")
            write_to_entry(dynamic_overwrite, _existing_entry(save.spark, name))


def _refuse_matching(save: Save) -> None:
    """Refuse the options replaceUsing and replaceOn for a new table, which has no rows that could match."""
    option_names = [name for key, (name, _) in save.options.items() if key in ("replaceusing", "replaceon")]
    if option_names:
        raise InvalidOptionError(
            f"create, replace and createOrReplace of writeTo do not go with the option {option_names[0]}: they make a new table. "
            "Nothing was written. Use df.write.mode('overwrite') to replace rows.",
            error_class="DELTA_DFV2_CREATE_REPLACE_INCOMPATIBLE_REPLACE_ON_OR_USING",
            sql_state="42000",
            option=option_names[0],
        )


def _replace(save: Save, entry: Entry) -> None:
    write_to_entry(_with_new_schema(save), entry)


def _with_new_schema(save: Save) -> Save:
    """Return an overwrite that gives the table the schema of the rows and the partitioning of the writer, which may be none."""
    partition_by = save.partition_by if save.partition_by is not None or save.cluster_by is not None else ()
    changed = replace(save, mode="overwrite", partition_by=partition_by)
    return changed.with_options(overwriteSchema="true", partitionOverwriteMode="static")


def overwrite_where(save: Save, path: str, condition: Any) -> Save:
    """Return a save that replaces the table's rows for which a Column is true. path: of the table. Raises InvalidOptionError
    for a Column that has no SQL."""
    text = _condition_sql(save.spark, path, condition)
    overwrite = replace(save, mode="overwrite")
    if text.lower() == "true":  # all rows, also if the session overwrites only the partitions of the new rows
        return overwrite.with_options(partitionOverwriteMode="static")
    return overwrite.without("partitionOverwriteMode").with_options(replaceWhere=text)


def _condition_sql(spark: Any, path: str, condition: Any) -> str:
    """Return the condition as SQL over the table's columns, after a check that Spark reads the text as the same condition.
    path: of the table."""

    def shape() -> DataFrame:
        """Return a frame without rows that has the table's columns."""
        empty: DataFrame = spark.createDataFrame([], spark.read.format(FORMAT).load(path).schema)
        return empty

    text = analyzer_of(spark).exact_text(shape, condition)
    if text is None:
        raise InvalidOptionError(
            f"The condition {condition} of overwrite() cannot be handed to a Python data source; nothing was written. Write "
            "it as SQL: .overwrite(F.expr(\"day = '2024-05-01'\")), or "
            "df.write.format('pydelta').mode('overwrite').option('replaceWhere', \"day = '2024-05-01'\").saveAsTable(name).",
            option="replaceWhere",
        )
    return text
