"""Commands that change or repair a table: optimize, zorder, vacuum, restore, fsck, checkpoint, properties."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from math import floor
from typing import Annotated

import typer

from pydelta_cli import spark as on_spark
from pydelta_cli.parameters import Place, Spark, Where, pairs_of
from pydelta_cli.run import FOUND, Run

_NEEDS_ONE = "say either --version or --at."
_TOO_SHORT, _RETENTION = "DELTA_VACUUM_RETENTION_PERIOD_TOO_SHORT", "delta.deletedFileRetentionDuration"

Full = Annotated[bool, typer.Option("--full", help="Of a clustered table, also the files that are clustered by other columns.")]
By = Annotated[str, typer.Option("--by", metavar="NAMES", help="Columns to order by, with commas between them.")]
Retention = Annotated[
    float | None, typer.Option("--retention-hours", metavar="H", help="How long removed files stay (default: as the table says).")
]
Delete = Annotated[bool, typer.Option("--delete", help="Delete the files. Without it, only list them.")]
Lite = Annotated[bool, typer.Option("--lite", help="List no directories: use the removed files in the log.")]
Keep = Annotated[list[int] | None, typer.Option("--keep-version", metavar="N", help="Stays readable; may be repeated.")]
ToVersion = Annotated[int | None, typer.Option("--version", metavar="N", help="The version to go back to.")]
ToTime = Annotated[str | None, typer.Option("--at", metavar="TIME", help="Go back to the newest version at or before this time.")]
IgnoreMissing = Annotated[
    bool, typer.Option("--ignore-missing-files", help="Restore the data files that exist. The rows of the others are lost.")
]
Repair = Annotated[bool, typer.Option("--repair", help="Repair what can be repaired. Without it, only list the faults.")]
Loss = Annotated[bool, typer.Option("--allow-data-loss", help="Also remove files from the table whose rows are then lost.")]
Data = Annotated[bool, typer.Option("--data", help="Read every page of every data file too, and compare it with its checksum.")]
Assignments = Annotated[list[str], typer.Argument(metavar="KEY=VALUE", help="Properties and their values.")]
Names = Annotated[list[str], typer.Argument(metavar="KEY", help="Names of properties.")]
IfExists = Annotated[bool, typer.Option("--if-exists", help="Ignore properties that the table does not have.")]


def optimize(run: Run, path: Place, where: Where = None, full: Full = False, spark: Spark = False) -> None:
    """Write the rows of small files into larger ones; for a clustered table, write new rows in the order of its columns."""
    if full and where is not None:
        raise typer.BadParameter("--full is for whole tables, and goes without --where.", param_hint="--full")
    if spark:
        metrics = on_spark.optimize(run, run.place(path), where, full=full)
    elif full:
        metrics = run.newest(path).optimize.cluster(full=True)
    else:
        metrics = run.newest(path).optimize.compact(where)
    run.answer({"metrics": metrics})


def zorder(run: Run, path: Place, by: By, where: Where = None, spark: Spark = False) -> None:
    """Write the rows again in the Z-order of columns, so that filters on them read few files."""
    from delta_py.types.names import split_list

    columns = split_list(by)
    if spark:
        metrics = on_spark.z_order(run, run.place(path), columns, where)
    else:
        metrics = run.newest(path).optimize.z_order(columns, where)
    run.answer({"metrics": metrics})


def vacuum(
    run: Run,
    path: Place,
    retention_hours: Retention = None,
    keep_version: Keep = None,
    lite: Lite = False,
    delete: Delete = False,
    spark: Spark = False,
) -> None:
    """List the files that no retained version references. With --delete, delete them."""
    import pyarrow.compute as pc

    keep_versions = tuple(keep_version or ())
    with _retention_as_options():
        if spark:
            # The result of Spark's VACUUM has no rows if it deletes: the files are those of a dry run just before.
            unused_files = on_spark.vacuum(run, run.place(path), retention_hours, keep_versions, lite=lite, delete=delete)
        else:
            table = run.newest(path)
            unused_files = table.vacuum(retention_hours, dry_run=not delete, keep_versions=keep_versions, lite=lite)
    files = [{**row, "modification_time": run.time(row["modification_time"])} for row in unused_files.to_pylist()]
    bytes_found = pc.sum(unused_files["size"]).as_py() or 0
    run.answer({"deleted": delete, "files_total": unused_files.num_rows, "bytes_total": bytes_found, "files": files})


@contextmanager
def _retention_as_options() -> Iterator[None]:
    """The error about a retention that is too short names the options of the command line: it has no switch for the check."""
    from delta_py.errors import InvalidOptionError

    try:
        yield
    except InvalidOptionError as error:
        parameters = error.message_parameters
        if error.error_class != _TOO_SHORT or "kept_hours" not in parameters:
            raise
        hours, kept_hours = parameters["hours"], parameters["kept_hours"]
        shorter = f"{hours:g} hours" if hours == floor(hours) else f"{floor(hours * 60)} minutes"
        raise InvalidOptionError(
            f"--retention-hours {hours:g} is shorter than the {kept_hours:g} hours of the table (its property {_RETENTION}). "
            "Readers and writers that are at work may need the files, and versions of that time could not be read any more. "
            f"Nothing was deleted. Say {kept_hours:g} or more. If you are sure that nobody needs the files, shorten the property "
            f"first: pydelta set PATH {_RETENTION}='interval {shorter}'.",
            error_class=error.error_class,
            sql_state=error.sql_state,
            **parameters,
        ) from error


def restore(
    run: Run, path: Place, version: ToVersion = None, at: ToTime = None, ignore_missing_files: IgnoreMissing = False
) -> None:
    """Commit the state of an earlier version as the newest."""
    from delta_py.copies.restore import restore as restored
    from delta_py.scan.time_travel import to_timestamp_ms

    if (version is None) == (at is None):
        raise typer.BadParameter(_NEEDS_ONE, param_hint="--version")
    time = None if at is None else to_timestamp_ms(at, run.zone)
    result = restored(
        run.store(path), version=version, timestamp_ms=time, timestamp=at, ignore_missing_files=ignore_missing_files
    )
    run.answer({"version": result.version, "metrics": {**result.metrics(), "numMissingFiles": result.num_missing_files}})


def fsck(run: Run, path: Place, repair: Repair = False, allow_data_loss: Loss = False, data: Data = False) -> int:
    """List missing or damaged parts of the newest version. Exits with 1 if there are any and they are not repaired."""
    from delta_py.repair.fsck import fsck as checked

    faults = checked(run.store(path), dry_run=not repair, allow_data_loss=allow_data_loss, check_data=data).to_pylist()
    remaining_faults = [fault for fault in faults if not (repair and fault["can_repair"])]
    run.answer({"repaired": len(faults) - len(remaining_faults), "left": len(remaining_faults), "faults": faults})
    return FOUND if remaining_faults else 0


def checkpoint(run: Run, path: Place) -> None:
    """Write a checkpoint of the newest version, so that it loads without earlier commits."""
    table = run.newest(path)
    run.answer({"version": table.version, "files": table.checkpoint()})


def set_(run: Run, path: Place, properties: Assignments) -> None:
    """Set table properties, including delta.feature.NAME=supported."""
    version = run.newest(path).alter.set_table_properties(pairs_of(properties, "KEY=VALUE"))
    run.answer({"version": version, "properties": dict(run.table(path).metadata.configuration)})


def unset(run: Run, path: Place, names: Names, if_exists: IfExists = False) -> None:
    """Delete table properties."""
    version = run.newest(path).alter.unset_table_properties(names, if_exists=if_exists)
    run.answer({"version": version, "properties": dict(run.table(path).metadata.configuration)})
