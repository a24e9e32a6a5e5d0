"""The builders of delta.tables: of tables, of columns, of OPTIMIZE. A wrong argument is an error at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

from pyspark.sql import types as spark_types

from delta_py.errors import InvalidOptionError
from delta_py.optimize.reorg import Purge
from delta_py.protocol import identity_columns
from delta_py.types.char_types import DECLARED_TYPE
from delta_py.types.column_rules import GENERATION
from spark_plugin.exceptions import as_spark_raises
from spark_plugin.maintenance.optimize_job import run_optimize
from spark_plugin.options.settings import TablePath
from spark_plugin.table_api.arguments import names_of, wrong_type

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import DataType, StructField, StructType


@dataclass(frozen=True)
class IdentityGenerator:
    """Values start, start + step, start + 2 * step, ... Each is used at most once; some are skipped."""

    start: int = 1
    step: int = 1


# ---------------------------------------------------------------- columns


class DeltaColumnBuilder:
    """One column of a new table; `build` returns the StructField that addColumns takes."""

    def __init__(self, spark: SparkSession, colName: str) -> None:
        if not isinstance(colName, str):
            wrong_type("Column name must be str.", [colName])
        self._spark = spark
        self._name = colName
        self._type: DataType | None = None
        self._nullable = True
        self._metadata: dict[str, Any] = {}

    def dataType(self, dataType: str | DataType) -> Self:
        """dataType: SQL text, such as `decimal(10,2)`, or a DataType. Raises the errors of Spark's parser."""
        if not isinstance(dataType, str | spark_types.DataType):
            wrong_type("Column data type must be str or DataType.", [dataType])
        self._type = spark_types.DataType.fromDDL(dataType) if isinstance(dataType, str) else dataType
        return self

    def nullable(self, nullable: bool) -> Self:
        if not isinstance(nullable, bool):
            wrong_type("Column nullable must be bool.", [nullable])
        self._nullable = nullable
        return self

    def generatedAlwaysAs(self, expr: str) -> Self:
        """expr: SQL over the other columns."""
        if not isinstance(expr, str):
            wrong_type("Generated always as expression must be str or IdentityGenerator.", [expr])
        self._metadata[GENERATION] = expr
        return self

    def generatedAlwaysAsIdentity(self, start: int = 1, step: int = 1) -> Self:
        return self._identity(IdentityGenerator(start, step), explicit=False)

    def generatedByDefaultAsIdentity(self, start: int = 1, step: int = 1) -> Self:
        return self._identity(IdentityGenerator(start, step), explicit=True)

    def comment(self, comment: str) -> Self:
        if not isinstance(comment, str):
            wrong_type("Column comment must be str.", [comment])
        self._metadata["comment"] = comment
        return self

    def build(self) -> StructField:
        """Raises InvalidOptionError (DELTA_COLUMN_MISSING_DATA_TYPE) for a column without a type; UnsupportedOperationError for
        an identity column that is not bigint."""
        if identity_columns.START in self._metadata and self._type not in (None, spark_types.LongType()):
            with as_spark_raises():
                raise identity_columns.unsupported_type(self._name, self._type.simpleString())
        if self._type is None:
            with as_spark_raises():
                raise InvalidOptionError(
                    f"Column {self._name} has no data type. Give it one with dataType(...).",
                    error_class="DELTA_COLUMN_MISSING_DATA_TYPE",
                    sql_state="42601",
                    column=self._name,
                )
        return stored_field(spark_types.StructField(self._name, self._type, self._nullable, dict(self._metadata)))

    def _identity(self, generator: IdentityGenerator, *, explicit: bool) -> Self:
        if generator.step == 0:
            raise ValueError("Column identity generation requires step to be non-zero.")
        self._metadata |= {
            identity_columns.START: generator.start,
            identity_columns.STEP: generator.step,
            identity_columns.ALLOW_EXPLICIT_INSERT: explicit,
        }
        return self


def stored_field(field: StructField) -> StructField:
    """Return the field as a table stores it: CHAR and VARCHAR are text with the declared type in the metadata."""
    plain = _plain_texts(field.dataType)
    if plain == field.dataType:
        return field
    metadata = {**(field.metadata or {}), DECLARED_TYPE: field.dataType.simpleString()}
    return spark_types.StructField(field.name, plain, field.nullable, metadata)


def _plain_texts(kind: DataType) -> DataType:
    """Return the type with STRING in place of CHAR and VARCHAR."""
    match kind:
        case spark_types.CharType() | spark_types.VarcharType():
            return spark_types.StringType()
        case spark_types.StructType():
            return spark_types.StructType(
                [spark_types.StructField(f.name, _plain_texts(f.dataType), f.nullable, f.metadata) for f in kind.fields]
            )
        case spark_types.ArrayType():
            return spark_types.ArrayType(_plain_texts(kind.elementType), kind.containsNull)
        case spark_types.MapType():
            return spark_types.MapType(_plain_texts(kind.keyType), _plain_texts(kind.valueType), kind.valueContainsNull)
    return kind


# ---------------------------------------------------------------- tables


@dataclass(frozen=True, slots=True)
class TableRequest:
    """The calls on a DeltaTableBuilder. mode: create, createIfNotExists, replace or createOrReplace. provider: of a new name in
    the catalog; None for the session's default."""

    mode: str
    name: str | None = None
    location: str | None = None
    description: str | None = None
    columns: tuple[StructField, ...] = ()
    partition_by: tuple[str, ...] = ()
    cluster_by: tuple[str, ...] = ()
    properties: Mapping[str, str] | None = None
    provider: str | None = None

    def arguments(self) -> dict[str, Any]:
        """Return the definition of the table, as JSON values."""
        return {
            "mode": self.mode,
            "schema": spark_types.StructType(list(self.columns)).json(),
            "partition_by": list(self.partition_by),
            "cluster_by": list(self.cluster_by),
            "description": self.description,
            "properties": dict(self.properties or {}),
        }


class DeltaTableBuilder:
    """Builds a table; made by DeltaTable.create and similar methods. Each call changes the builder and returns it.

    finish: makes the table of a request.
    """

    def __init__(self, spark: SparkSession, mode: str, finish: Callable[[SparkSession, TableRequest], Any]) -> None:
        self._spark = spark
        self._request = TableRequest(mode)
        self._finish = finish

    def tableName(self, identifier: str) -> Self:
        """identifier: a name for Spark's catalog, or delta.`/path`."""
        if not isinstance(identifier, str):
            wrong_type("Identifier must be str.", [identifier])
        return self._with(name=identifier)

    def location(self, location: str) -> Self:
        if not isinstance(location, str):
            wrong_type("Location must be str.", [location])
        return self._with(location=location)

    def comment(self, comment: str) -> Self:
        if not isinstance(comment, str):
            wrong_type("Table comment must be str.", [comment])
        return self._with(description=comment)

    def addColumn(
        self,
        colName: str,
        dataType: str | DataType,
        nullable: bool = True,
        generatedAlwaysAs: str | IdentityGenerator | None = None,
        generatedByDefaultAs: IdentityGenerator | None = None,
        comment: str | None = None,
    ) -> Self:
        """Raises TypeError for an argument of a wrong type; ValueError for both kinds of generation, or a step of 0."""
        column = DeltaColumnBuilder(self._spark, colName).dataType(dataType).nullable(nullable)
        if generatedAlwaysAs is not None and generatedByDefaultAs is not None:
            raise ValueError(
                "generatedByDefaultAs and generatedAlwaysAs cannot both be set: "
                f"{generatedByDefaultAs!r}, {generatedAlwaysAs!r}. Leave one out."
            )
        if isinstance(generatedAlwaysAs, IdentityGenerator):
            column.generatedAlwaysAsIdentity(generatedAlwaysAs.start, generatedAlwaysAs.step)
        elif generatedAlwaysAs is not None:
            column.generatedAlwaysAs(generatedAlwaysAs)
        elif isinstance(generatedByDefaultAs, IdentityGenerator):
            column.generatedByDefaultAsIdentity(generatedByDefaultAs.start, generatedByDefaultAs.step)
        elif generatedByDefaultAs is not None:
            wrong_type("Generated by default expression must be IdentityGenerator.", [generatedByDefaultAs])
        if comment is not None:
            column.comment(comment)
        return self._with(columns=(*self._request.columns, column.build()))

    def addColumns(self, cols: StructType | list[StructField]) -> Self:
        if isinstance(cols, list):
            for column in cols:
                if not isinstance(column, spark_types.StructField):
                    wrong_type("Column in existing schema must be StructField.", [column])
            cols = spark_types.StructType(cols)
        if not isinstance(cols, spark_types.StructType):
            wrong_type("Schema must be StructType or a list of StructField.", [cols])
        return self._with(columns=(*self._request.columns, *map(stored_field, cols.fields)))

    def partitionedBy(self, *cols: str | list[str] | tuple[str, ...]) -> Self:
        return self._with(partition_by=tuple(names_of(cols, "Partitioning column")))

    def clusterBy(self, *cols: str | list[str] | tuple[str, ...]) -> Self:
        return self._with(cluster_by=tuple(names_of(cols, "Clustering column")))

    def property(self, key: str, value: str) -> Self:
        if not all(isinstance(text, str) for text in (key, value)):
            wrong_type("Key and value of property must be string.", [key, value])
        return self._with(properties={**(self._request.properties or {}), key: value})

    def execute(self) -> Any:
        """Make the table; returns its DeltaTable."""
        with as_spark_raises():
            return self._finish(self._spark, self._request)

    def _with(self, **changes: Any) -> Self:
        self._request = replace(self._request, **changes)
        return self


# ---------------------------------------------------------------- OPTIMIZE


class DeltaOptimizeBuilder:
    """Builds an OPTIMIZE; made by DeltaTable.optimize."""

    def __init__(self, spark: SparkSession, table: TablePath, condition: str | None = None) -> None:
        self._spark = spark
        self._table = table
        self._condition = condition

    def where(self, partitionFilter: str) -> DeltaOptimizeBuilder:
        """partitionFilter: SQL over partition columns."""
        if not isinstance(partitionFilter, str):
            wrong_type("Partition filter must be str.", [partitionFilter])
        return DeltaOptimizeBuilder(self._spark, self._table, partitionFilter)

    def executeCompaction(self, *, full: bool = False) -> DataFrame:
        """Rewrite small files, and files with many deleted rows, as files of about delta.targetFileSize (by default 1 GB). Other
        writers may continue during this time. Returns one row: path, metrics.

        The rows of a clustered table are clustered: those that are not clustered yet, and those that were clustered in small
        groups.
        full: also those that are clustered by other columns; a table without clustering is refused
        (DELTA_OPTIMIZE_FULL_NOT_SUPPORTED).

        Raises InvalidOptionError (DELTA_NON_PARTITION_COLUMN_REFERENCE), ExpressionError (DELTA_FAILED_RECOGNIZE_PREDICATE).
        """
        return run_optimize(self._spark, self._table, self._condition, full=full)

    def executeZOrderBy(self, *cols: str | list[str] | tuple[str, ...]) -> DataFrame:
        """Rewrite all rows, those of each partition in the Z-order of the columns, so that readers that filter by any of them
        skip files. A partition that already has this order is not changed. Returns the same as executeCompaction, and does the
        same without columns.

        cols: names, with dots for nested columns. Raises InvalidOptionError (DELTA_ZORDERING_ON_PARTITION_COLUMN,
        DELTA_ZORDERING_COLUMN_DOES_NOT_EXIST, DELTA_ZORDERING_ON_COLUMN_WITHOUT_STATS), UnsupportedOperationError for a clustered
        table (DELTA_CLUSTERING_WITH_ZORDER_BY).
        """
        return run_optimize(self._spark, self._table, self._condition, z_order=tuple(names_of(cols, "Z-order column")))


class DeltaReorgBuilder:
    """Builds a REORG TABLE; made by DeltaTable.reorg. delta.tables has it in SQL only."""

    def __init__(self, spark: SparkSession, table: TablePath, condition: str | None = None) -> None:
        self._spark = spark
        self._table = table
        self._condition = condition

    def where(self, partitionFilter: str) -> DeltaReorgBuilder:
        """partitionFilter: SQL over partition columns."""
        if not isinstance(partitionFilter, str):
            wrong_type("Partition filter must be str.", [partitionFilter])
        return DeltaReorgBuilder(self._spark, self._table, partitionFilter)

    def executePurge(self) -> DataFrame:
        """Rewrite the files from which deletion vectors deleted rows, without these rows, and the files that contain dropped
        columns, without these columns. Other writers may continue during this time. Returns one row as OPTIMIZE does: path,
        metrics.

        Raises the same as DeltaOptimizeBuilder.executeCompaction, and DataFileError for files that cannot be read.
        """
        return run_optimize(self._spark, self._table, self._condition, Purge)
