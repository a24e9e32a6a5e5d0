"""OPTIMIZE that sorts rows: Z-order by the columns that the user names, clustering by those of the table.

Z-order takes all files of a partition, unless all of them are outputs of such an OPTIMIZE: then it does nothing. Clustering is
incremental: files that it wrote together are a cube, a large cube stays as it is, and new files and small cubes become a new
cube. If another writer changes a file of a bin, the bin is dropped, because it is unknown to which new file its rows went.
Protocol: Clustered Table; Add File and Remove File.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from delta_py.errors import InvalidOptionError, SchemaMismatchError, UnsupportedOperationError
from delta_py.layout.curves import MAX_PLACE_BITS
from delta_py.layout.row_order import PIECES, Curve, RowOrder
from delta_py.optimize.optimize_bins import (
    TARGET_TAG,
    Bin,
    BinWriters,
    ChosenBins,
    Compaction,
    OptimizeRequest,
    estimate_row_count,
    pack_into_bins,
)
from delta_py.progress import share
from delta_py.protocol.actions import AddFile, DomainMetadata
from delta_py.protocol.clustering import clustering_columns, clustering_leaves
from delta_py.protocol.column_mapping import physical_path
from delta_py.scan.planning import plan_scan
from delta_py.snapshot import Snapshot
from delta_py.statistics.stats_columns import with_added_paths
from delta_py.types.names import joined_name
from delta_py.types.schema import ArrayType, GeospatialType, MapType, Path, StructType, find_named, type_name
from delta_py.write.arranging import Arrangement, SampledBin
from delta_py.write.data_files import WrittenFiles
from delta_py.write.rewrite import remove_action_of, wrong_row_count

_Z_ORDER_TAG = "ZORDER_BY"
_CUBE_ID, _CUBE_COLUMNS, _CUBE_CURVE = "ZCUBE_ID", "ZCUBE_ZORDER_BY", "ZCUBE_ZORDER_CURVE"
_PROVIDER = "liquid"
# The most rows in the sample of a bin; about the most rows in the samples of all bins of a batch, which the driver holds at once;
# and the least rows of a sample for each new file, up to the first number.
_SAMPLED_ROWS, _SAMPLED_AT_ONCE, _SAMPLED_A_FILE = 100_000, 2_000_000, 16 * PIECES
_SAMPLING_SHARE = 0.1  # about the sample's share of the time, for the progress line


def choose_compaction(snapshot: Snapshot, clustering: DomainMetadata | None, request: OptimizeRequest) -> Compaction:
    """The kind of compaction that the request means on this table: Compaction, ZOrdering or Clustering. clustering: the
    snapshot's domain that names clustering columns; None if it has none. Raises as optimize."""
    columns = clustering_columns(snapshot.schema, clustering)
    if request.full and not columns:
        raise UnsupportedOperationError(
            f"The table at {snapshot.table_root} is not clustered, and OPTIMIZE FULL is for the files of a clustered table. "
            "Nothing was changed. Leave FULL out.",
            error_class="DELTA_OPTIMIZE_FULL_NOT_SUPPORTED",
            sql_state="42601",
            operation="OPTIMIZE",
        )
    if not columns:
        return ZOrdering.of(snapshot, request) if request.z_order else Compaction.of(snapshot, request)
    if request.z_order:
        raise UnsupportedOperationError(
            f"The table at {snapshot.table_root} is clustered by ({', '.join(columns)}), so its files are not put in Z-order by "
            f"({', '.join(request.z_order)}). Nothing was changed. Run OPTIMIZE without Z-order.",
            error_class="DELTA_CLUSTERING_WITH_ZORDER_BY",
            sql_state="42613",
            operation="OPTIMIZE",
        )
    if request.predicate is not None:
        raise UnsupportedOperationError(
            f"The table at {snapshot.table_root} is clustered and has no partitions, so that OPTIMIZE cannot choose files by "
            f"{request.predicate!r}. Nothing was changed. Leave the predicate out: what is clustered already is not done again.",
            error_class="DELTA_CLUSTERING_WITH_PARTITION_PREDICATE",
            sql_state="0A000",
            operation="OPTIMIZE",
        )
    return Clustering.of_domain(snapshot, clustering, request)


class Ordering(Compaction):
    """A compaction that sorts rows. curve: the order of the rows. columns: those that order them, as the log names them, dotted.
    paths: the same columns as logical paths."""

    curve: ClassVar[Curve]
    columns: tuple[str, ...]
    paths: tuple[Path, ...]

    @property
    def arrangement(self) -> Arrangement:
        """How the tasks write the rows."""
        return Arrangement.of(self.snapshot.config, self.rewrite, self.paths, self.target_bytes)

    def write(self, writers: BinWriters, bins: Sequence[Bin]) -> list[WrittenFiles]:
        """Sample the rows of each bin to find an order for it, and write all rows of the bin in this order."""
        arrangement = self.arrangement
        with share(_SAMPLING_SHARE):
            samples = writers.sample(arrangement, [SampledBin(files, self._sample_step(files, len(bins))) for files in bins])
        orders = [
            RowOrder.of(sample, self.paths, self.curve, self._file_count(files)) if sample.num_rows else None
            for files, sample in zip(bins, samples, strict=True)
        ]
        with share(1 - _SAMPLING_SHARE):
            written = self._keep_old_instants(bins, writers.arrange(arrangement, bins, orders))
        removes = [WrittenFiles(removes=tuple(remove_action_of(file, data_change=False) for file in files)) for files in bins]
        return [WrittenFiles.of_all(parts) for parts in zip(written, removes, strict=True)]

    def _file_count(self, files: Bin) -> int:
        """The number of new files for the rows of a bin."""
        return max(1, round(sum(file.size_bytes for file in files) / self.target_bytes))

    def _sample_step(self, files: Bin, bins: int) -> int:
        """The step of the sample of a bin, given the number of bins: the sample has every n-th row."""
        sample_rows = min(_SAMPLED_ROWS, max(_SAMPLED_AT_ONCE // bins, _SAMPLED_A_FILE * self._file_count(files)))
        return max(1, estimate_row_count(files) // sample_rows)

    def _prepare_for_commit(self, old_files: Bin, written: WrittenFiles, live_files: Bin | None) -> WrittenFiles | None:
        """The new files of a bin, ready to commit; None if another writer has changed one of the old files. live_files: the old
        files as they are now.
        """
        mismatch = wrong_row_count(old_files, written.row_count)
        if mismatch is not None:
            raise mismatch
        if live_files is None or any(
            live_file.deletion_vector != file.deletion_vector for live_file, file in zip(live_files, old_files, strict=True)
        ):
            return None
        tags = self._tags()
        tagged_adds = (replace(add, tags={**(add.tags or {}), **tags}) for add in written.adds)
        return replace(written, adds=tuple(map(self._add_provider, tagged_adds)))

    def _add_provider(self, add: AddFile) -> AddFile:
        """The add with the name of the clustering implementation; Z-order has none."""
        return add

    @property
    def _columns_text(self) -> str:
        """The columns as JSON, for tags."""
        return orjson.dumps(self.columns).decode()


class ZOrdering(Ordering):
    """Sorts the rows of each partition along the Z-order of the request's columns."""

    curve = Curve.Z_ORDER
    kind = "zorder"

    @classmethod
    def of(cls, snapshot: Snapshot, request: OptimizeRequest) -> ZOrdering:
        """The Z-order that a request asks for, on a version of the table. Raises as optimize."""
        compaction = super().of(snapshot, request)
        compaction.columns = request.z_order
        compaction.paths = tuple(_z_order_path(compaction, name) for name in request.z_order)
        if len(set(compaction.paths)) < len(compaction.paths) or len(compaction.paths) > MAX_PLACE_BITS:
            raise InvalidOptionError(
                f"Z-order by ({', '.join(request.z_order)}): name each column once, and at most {MAX_PLACE_BITS}. Nothing was "
                "changed.",
                option="z_order",
            )
        return compaction

    def choose(self) -> ChosenBins:
        """Choose all files of each partition, as one bin. Partitions whose files are all in this order already are left out."""
        files = plan_scan(self.snapshot, None, self.predicate, self._scan_options).files
        groups = self._partition_numbers(files)
        tags = files["tags"]
        is_ordered = pc.and_(
            pc.fill_null(pc.equal(pc.map_lookup(tags, _Z_ORDER_TAG, "first"), self._physical_text), False),
            pc.fill_null(pc.equal(pc.map_lookup(tags, TARGET_TAG, "first"), str(self.target_bytes)), False),
        )
        is_new = ~np.asarray(is_ordered) | self._has_many_deleted(files)
        has_new = np.bincount(groups, is_new) > 0 if len(groups) else np.zeros(0, bool)
        # Each partition is a bin, with the number of the partition.
        order = np.argsort(groups, kind="stable")
        bins = files.take(pa.array(order)).append_column("bin", pa.array(groups[order])).filter(pa.array(has_new[groups[order]]))
        return ChosenBins(bins, files.num_rows)

    def _tags(self) -> dict[str, str]:
        return {_Z_ORDER_TAG: self._physical_text, TARGET_TAG: str(self.target_bytes)}

    @property
    def _physical_text(self) -> str:
        """The columns by their physical names: after a rename another column may have the logical name."""
        config = self.snapshot.config
        physical = [joined_name(physical_path(config.schema, path, config.column_mapping_mode)) for path in self.paths]
        return orjson.dumps(physical).decode()

    def _parameters(self) -> dict[str, Any]:
        return {**super()._parameters(), "zOrderBy": list(self.columns)}


def _z_order_path(compaction: Compaction, name: str) -> Path:
    """The path of a column that rows are sorted by. Raises InvalidOptionError, with delta-spark's error classes, for a column
    that cannot order rows."""
    config = compaction.snapshot.config
    try:
        fields = find_named(config.schema, name)
    except SchemaMismatchError as error:
        raise InvalidOptionError(
            f"Z-order by {name}: the table has no such column. {error.message} Nothing was changed.",
            error_class="DELTA_ZORDERING_COLUMN_DOES_NOT_EXIST",
            sql_state="42703",
            column=name,
        ) from error
    path, leaf = tuple(f.name for f in fields), fields[-1].data_type
    if path[0] in config.partition_columns:
        raise InvalidOptionError(
            f"{name} is a partition column. Z-Ordering can only be performed on data columns, as all rows of a file have one "
            "value of it. Nothing was changed.",
            error_class="DELTA_ZORDERING_ON_PARTITION_COLUMN",
            sql_state="42P10",
            column=name,
        )
    if isinstance(leaf, GeospatialType):
        raise InvalidOptionError(
            f"Z-order by {name}: values of the type {type_name(leaf)} have no order. Nothing was changed. Order by another one.",
            error_class="DELTA_OPERATION_NOT_SUPPORTED_FOR_DATATYPES",
            sql_state="0AKDC",
            column=name,
        )
    # no_order: values of the type cannot be compared. no_bounds: statistics have no minimum and maximum of the type.
    has_stats = physical_path(config.schema, path, config.column_mapping_mode) in compaction.rewrite.state.stats_columns
    no_order = isinstance(leaf, StructType | ArrayType | MapType) or type_name(leaf) in ("variant", "void")
    no_bounds = no_order or type_name(leaf) in ("binary", "boolean")
    if no_order or (compaction.request.check_z_order_stats and (no_bounds or not has_stats)):
        raise InvalidOptionError(
            f"The table has no minimum and maximum of {name} ({type_name(leaf)}) for its files, so that an order by it lets no "
            "reader skip one. Nothing was changed. Name the column in delta.dataSkippingStatsColumns, or order by another one.",
            error_class="DELTA_ZORDERING_ON_COLUMN_WITHOUT_STATS",
            sql_state="KD00D",
            column=name,
        )
    return path


class Clustering(Ordering):
    """Sorts new rows of a clustered table along the Hilbert curve of its clustering columns."""

    curve = Curve.HILBERT
    kind = "clustering"

    @classmethod
    def of_domain(cls, snapshot: Snapshot, clustering: DomainMetadata | None, request: OptimizeRequest) -> Clustering:
        """The clustering by the columns that a table's metadata domain names. clustering: names at least one column. Raises as
        optimize; SchemaMismatchError for a column that does not exist any more.
        """
        compaction = cls.of(snapshot, request)
        compaction.columns = clustering_columns(snapshot.schema, clustering)
        compaction.paths = tuple(tuple(f.name for f in find_named(snapshot.schema, name)) for name in compaction.columns)
        # The new files have statistics of the clustering columns, even if the table's properties do not name these columns.
        leaves = clustering_leaves(snapshot.schema, clustering)
        state = replace(compaction.rewrite.state, stats_columns=with_added_paths(compaction.rewrite.state.stats_columns, leaves))
        compaction.rewrite = replace(compaction.rewrite, state=state)
        return compaction

    def choose(self) -> ChosenBins:
        """Choose the files that are in no cube (files that one clustering wrote together), and those of small cubes; with `full`
        also those of cubes by other columns."""
        request = self.request
        files = plan_scan(self.snapshot, None, None, self._scan_options).files
        cubes, columns = (pc.map_lookup(files["tags"], tag, "first") for tag in (_CUBE_ID, _CUBE_COLUMNS))
        cubes = pc.if_else(columns.is_valid(), cubes, None)  # a cube without its columns counts as none
        is_clustered_here = pc.fill_null(pc.equal(files["clustering_provider"], _PROVIDER), True)
        is_other = pc.fill_null(pc.not_equal(columns, self._columns_text), False)
        # Files that we clustered by the present columns, and files in no cube, may join a larger cube.
        can_join_cube = np.asarray(pc.and_(is_clustered_here, pc.invert(pc.and_(is_other, cubes.is_valid()))))
        numbers, sizes = _cube_numbers(cubes), files["size"].to_numpy()
        cube_sizes = np.bincount(numbers[can_join_cube], sizes[can_join_cube], minlength=int(numbers.max(initial=0)) + 1)
        is_small = (numbers == 0) | (cube_sizes[numbers] < request.min_cube_bytes)
        chosen = can_join_cube & is_small  # number 0 stands for files in no cube
        if request.full:
            chosen |= ~can_join_cube
        chosen_cubes = np.unique(numbers[chosen])
        if len(chosen_cubes) == 1 and chosen_cubes[0] != 0 and not (request.full and (~can_join_cube).any()):
            # If only the files of one cube are chosen, they are in order already: only many deleted rows are a reason to rewrite.
            chosen &= bool((self._has_many_deleted(files) & chosen).any())
        considered, counts = files.num_rows, _clustering_counts(numbers, sizes, chosen)
        files, numbers = files.filter(pa.array(chosen)), numbers[chosen]
        order = np.lexsort((files["modification_time"].to_numpy(), numbers))
        files = files.take(pa.array(order))
        # A cube below min_cube_bytes would be written again by the next run.
        limit = max(request.target_cube_bytes, request.min_cube_bytes)
        bins = pack_into_bins(files["size"].to_numpy(), np.zeros(files.num_rows, np.int64), limit)
        return ChosenBins(files.append_column("bin", pa.array(bins)), considered, counts)

    def _tags(self) -> dict[str, str]:
        return {
            _CUBE_ID: str(uuid.uuid4()),
            _CUBE_COLUMNS: self._columns_text,
            _CUBE_CURVE: self.curve.value,
            TARGET_TAG: str(self.target_bytes),
        }

    def _add_provider(self, add: AddFile) -> AddFile:
        return replace(add, clustering_provider=_PROVIDER)

    def _parameters(self) -> dict[str, Any]:
        return {**super()._parameters(), "clusterBy": list(self.columns), "isFull": self.request.full}


def _cube_numbers(cubes: pa.ChunkedArray) -> np.ndarray[Any, np.dtype[np.int64]]:
    """0 for files in no cube, and a number from 1 on for each cube."""
    codes = cubes.combine_chunks().dictionary_encode().indices
    numbers = pc.fill_null(codes.cast(pa.int64()), -1).to_numpy(zero_copy_only=False)
    return np.asarray(numbers + 1)


def _clustering_counts(
    cubes: np.ndarray[Any, np.dtype[np.int64]],
    sizes: np.ndarray[Any, np.dtype[np.int64]],
    chosen: np.ndarray[Any, np.dtype[np.bool_]],
) -> dict[str, Any]:
    """clusteringStats of delta-spark, without the written cubes."""

    def count_files(files: np.ndarray[Any, np.dtype[np.bool_]]) -> dict[str, int]:
        return {"numFiles": int(files.sum()), "size": int(sizes[files].sum())}

    return {
        "inputZCubeFiles": count_files(cubes > 0),
        "inputOtherFiles": count_files(cubes == 0),
        "inputNumZCubes": len(np.unique(cubes[cubes > 0])),
        "mergedFiles": count_files(chosen),
    }
