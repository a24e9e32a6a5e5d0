"""What changes a table, or mends it: optimize, zorder, vacuum, restore, fsck, checkpoint, properties."""

from __future__ import annotations

from typing import Annotated

import typer

from pydelta_cli import spark as on_spark
from pydelta_cli.parameters import Path, Spark, Where, pairs_of
from pydelta_cli.run import FOUND, Run

_NEEDS_ONE = "Say either --version or --at."

Full = Annotated[bool, typer.Option("--full", help="Of a clustered table, also the files that are clustered by other columns.")]
By = Annotated[str, typer.Option("--by", metavar="NAMES", help="Columns to order by, with commas between them.")]
Retention = Annotated[
    float | None, typer.Option("--retention-hours", metavar="H", help="How long removed files stay (default: as the table says).")
]
Delete = Annotated[bool, typer.Option("--delete", help="Delete the files. Without it, only tell which would go.")]
Lite = Annotated[bool, typer.Option("--lite", help="List no directory: take what the log says was removed.")]
Keep = Annotated[list[int] | None, typer.Option("--keep-version", metavar="N", help="Stays readable; may be repeated.")]
ToVersion = Annotated[int | None, typer.Option("--version", metavar="N", help="The version to go back to.")]
ToTime = Annotated[str | None, typer.Option("--at", metavar="TIME", help="Go back to the newest version at or before this time.")]
Repair = Annotated[bool, typer.Option("--repair", help="Mend what can be mended. Without it, only tell what is wrong.")]
Loss = Annotated[bool, typer.Option("--allow-data-loss", help="Take files out of the table whose rows are lost by that.")]
Assignments = Annotated[list[str], typer.Argument(metavar="KEY=VALUE...", help="Properties and their values.")]
Names = Annotated[list[str], typer.Argument(metavar="KEY...", help="Names of properties.")]
IfExists = Annotated[bool, typer.Option("--if-exists", help="Pass over properties that the table does not have.")]


def optimize(run: Run, path: Path, where: Where = None, full: Full = False, spark: Spark = False) -> None:
    """Write the rows of small files anew in larger ones; of a clustered table, new rows in the order of its columns."""
    if full and where is not None:
        raise typer.BadParameter("--full is for whole tables, and goes without --where.", param_hint="--full")
    if spark:
        metrics = on_spark.optimize(run, path, where, full=full)
    elif full:
        metrics = run.table(path).optimize.cluster(full=True)
    else:
        metrics = run.table(path).optimize.compact(where)
    run.answer({"metrics": metrics})


def zorder(run: Run, path: Path, by: By, where: Where = None, spark: Spark = False) -> None:
    """Write the rows anew in the Z-order of columns, so that filters on them read few files."""
    from delta_py.protocol.names import split_list

    columns = split_list(by)
    metrics = on_spark.z_order(run, path, columns, where) if spark else run.table(path).optimize.z_order(columns, where)
    run.answer({"metrics": metrics})


def vacuum(
    run: Run,
    path: Path,
    retention_hours: Retention = None,
    keep_version: Keep = None,
    lite: Lite = False,
    delete: Delete = False,
    spark: Spark = False,
) -> None:
    """Files that no version needs which is to stay readable. With --delete they go."""
    import pyarrow.compute as pc

    kept = tuple(keep_version or ())
    if spark:
        # Spark's answer to a VACUUM that deletes has no rows: the files are those of a look just before.
        found = on_spark.vacuum(run, path, retention_hours, kept, lite=lite, delete=delete)
    else:
        table = run.table(path)
        found = table.vacuum(retention_hours, dry_run=not delete, keep_versions=kept, lite=lite)
    files = [{**row, "modification_time": run.time(row["modification_time"])} for row in found.to_pylist()]
    bytes_found = pc.sum(found["size"]).as_py() or 0
    run.answer({"deleted": delete, "files_total": found.num_rows, "bytes_total": bytes_found, "files": files})


def restore(run: Run, path: Path, version: ToVersion = None, at: ToTime = None) -> None:
    """Commit the state of an earlier version as the newest."""
    from delta_py.commands.restore import restore as restored
    from delta_py.scan.time_travel import to_timestamp_ms

    if (version is None) == (at is None):
        raise typer.BadParameter(_NEEDS_ONE, param_hint="--version")
    time = None if at is None else to_timestamp_ms(at, run.zone)
    done = restored(run.store(path), version=version, timestamp_ms=time, timestamp=at)
    run.answer({"version": done.version, "metrics": done.metrics()})


def fsck(run: Run, path: Path, repair: Repair = False, allow_data_loss: Loss = False) -> int:
    """What of the newest version is missing or damaged. Exits with 1 where something is, and is not repaired."""
    from delta_py.commands.fsck import fsck as checked

    faults = checked(run.store(path), dry_run=not repair, allow_data_loss=allow_data_loss).to_pylist()
    left = [fault for fault in faults if not (repair and fault["can_repair"])]
    run.answer({"repaired": len(faults) - len(left), "left": len(left), "faults": faults})
    return FOUND if left else 0


def checkpoint(run: Run, path: Path) -> None:
    """Write a checkpoint of the newest version, so that it loads without the commits before it."""
    table = run.table(path)
    run.answer({"version": table.version, "files": table.checkpoint()})


def set_(run: Run, path: Path, properties: Assignments) -> None:
    """Set table properties, delta.feature.NAME=supported among them."""
    version = run.table(path).alter.set_table_properties(pairs_of(properties, "KEY=VALUE"))
    run.answer({"version": version, "properties": dict(run.table(path).metadata.configuration)})


def unset(run: Run, path: Path, names: Names, if_exists: IfExists = False) -> None:
    """Take table properties away."""
    version = run.table(path).alter.unset_table_properties(names, if_exists=if_exists)
    run.answer({"version": version, "properties": dict(run.table(path).metadata.configuration)})
