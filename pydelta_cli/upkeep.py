"""Commands that change or repair a table: optimize, zorder, vacuum, restore, fsck, checkpoint, properties."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import floor
from typing import Annotated, Any

import typer

from pydelta_cli import spark as on_spark
from pydelta_cli.parameters import Place, Spark, Where, pairs_of
from pydelta_cli.run import FOUND, Form, Run, say

_NEEDS_ONE = "say either --version or --at."
_TOO_SHORT, _RETENTION = "DELTA_VACUUM_RETENTION_PERIOD_TOO_SHORT", "delta.deletedFileRetentionDuration"

Full = Annotated[bool, typer.Option("--full", help="Also the files of a clustered table that are clustered by other columns.")]
By = Annotated[str, typer.Option("--by", metavar="NAMES", help="Columns to order by, with commas between them.")]
Retention = Annotated[
    float | None, typer.Option("--retention-hours", metavar="H", help="How long removed files stay (default: as the table says).")
]
Delete = Annotated[bool, typer.Option("--delete", help="Delete the files. Without it, only list them.")]
Lite = Annotated[bool, typer.Option("--lite", help="List no directories: use the removed files in the log.")]
Keep = Annotated[
    list[int] | None, typer.Option("--keep-version", metavar="N", help="A version that stays readable; may be repeated.")
]
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
    run.answer({"metrics": metrics}, lambda: _show_optimized(metrics))


def zorder(run: Run, path: Place, by: By, where: Where = None, spark: Spark = False) -> None:
    """Write the rows again in the Z-order of columns, so that filters on them read few files."""
    from delta_py.types.names import split_list

    columns = split_list(by)
    if spark:
        metrics = on_spark.z_order(run, run.place(path), columns, where)
    else:
        metrics = run.newest(path).optimize.z_order(columns, where)
    run.answer({"metrics": metrics}, lambda: _show_optimized(metrics))


def _show_optimized(metrics: Mapping[str, Any]) -> None:
    from delta_py.report.words import count_text
    from delta_py.types.sizes import bytes_text

    removed, added = metrics["numFilesRemoved"], metrics["numFilesAdded"]
    if not removed and not added:
        say("No file needed to be rewritten. Nothing was committed.")
        return
    removed_bytes, added_bytes = (metrics[name]["totalSize"] or 0 for name in ("filesRemoved", "filesAdded"))
    before, after = f"{count_text(removed, 'file')} ({bytes_text(removed_bytes)})", count_text(added, "file")
    say(f"{before} became {after} ({bytes_text(added_bytes)}).")


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
    unused_bytes = pc.sum(unused_files["size"]).as_py() or 0
    form = {"deleted": delete, "files_total": unused_files.num_rows, "bytes_total": unused_bytes, "files": files}
    times = [run.time_text(time) for time in unused_files["modification_time"].to_pylist()]
    run.answer(form, lambda: _show_unused(run, form, times))


def _show_unused(run: Run, form: Form, times: Sequence[str | None]) -> None:
    from delta_py.report.words import count_text
    from delta_py.types.sizes import bytes_text
    from pydelta_cli.formats.text_tables import Column

    if not form["files"]:
        say("No file can be deleted: retained versions reference all files, or the files are too new.")
        return
    columns = [Column("file"), Column("size", is_number=True), Column("modified"), Column("reason", is_prose=True)]
    rows = [
        (file["path"], bytes_text(file["size"]), time, file["reason"]) for file, time in zip(form["files"], times, strict=True)
    ]
    run.print_first(columns, rows, "file")
    total = f"{count_text(form['files_total'], 'file')}, {bytes_text(form['bytes_total'])}"
    if form["deleted"]:
        say(f"{total} deleted.")
    else:
        say(f"{total} would be deleted; add --delete.", colour="yellow")


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
    form = {"version": result.version, "metrics": {**result.metrics(), "numMissingFiles": result.num_missing_files}}
    run.answer(form, lambda: _show_restored(form))


def _show_restored(form: Form) -> None:
    from delta_py.report.words import count_text
    from delta_py.types.sizes import bytes_text

    metrics = form["metrics"]
    size = bytes_text(metrics["tableSizeAfterRestore"])
    say(
        f"Restored as version {form['version']}: {count_text(metrics['numRestoredFiles'], 'file')} restored, "
        f"{metrics['numRemovedFiles']:,} removed. The table has {count_text(metrics['numOfFilesAfterRestore'], 'file')}, {size}."
    )
    if missing := metrics["numMissingFiles"]:
        say(f"The rows of {count_text(missing, 'missing file')} are lost.", colour="red")


def fsck(run: Run, path: Place, repair: Repair = False, allow_data_loss: Loss = False, data: Data = False) -> int:
    """List missing or damaged parts of the newest version. Exits with 1 if there are any and they are not repaired."""
    from delta_py.repair.fsck import fsck as checked

    faults = checked(run.store(path), dry_run=not repair, allow_data_loss=allow_data_loss, check_data=data).to_pylist()
    remaining_faults = [fault for fault in faults if not (repair and fault["can_repair"])]
    form = {"repaired": len(faults) - len(remaining_faults), "left": len(remaining_faults), "faults": faults}
    run.answer(form, lambda: _show_faults(run, form, is_repair=repair))
    return FOUND if remaining_faults else 0


def _show_faults(run: Run, form: Form, *, is_repair: bool) -> None:
    from delta_py.report.words import count_text
    from delta_py.types.sizes import bytes_text
    from pydelta_cli.formats.text_tables import Column

    faults = form["faults"]
    if not faults:
        say("No fault was found.")
        return
    columns = [Column("kind"), Column("path"), Column("size", is_number=True), Column("reason", is_prose=True)]
    columns += [Column("repair"), Column("lost rows", is_number=True)]
    rows = [
        (
            fault["kind"],
            fault["path"],
            None if fault["size"] is None else bytes_text(fault["size"]),
            fault["reason"],
            "possible" if fault["can_repair"] else "only from a backup",
            f"{fault['rows_lost']:,}" if fault["rows_lost"] else None,
        )
        for fault in faults
    ]
    run.print_first(columns, rows, "fault")
    if is_repair:
        say(f"{count_text(form['repaired'], 'fault')} repaired, {form['left']:,} left.", colour="red" if form["left"] else None)
        return
    reparable_count = sum(fault["can_repair"] for fault in faults)
    advice = f"{reparable_count:,} can be repaired; add --repair." if reparable_count else "None can be repaired here."
    say(f"{count_text(len(faults), 'fault')}. {advice}", colour="red")


def checkpoint(run: Run, path: Place) -> None:
    """Write a checkpoint of the newest version, so that it loads without earlier commits."""
    from delta_py.report.words import count_text

    table = run.newest(path)
    form = {"version": table.version, "files": table.checkpoint()}
    run.answer(form, lambda: say(f"Checkpoint of version {form['version']} written, with {count_text(form['files'], 'file')}."))


def set_(run: Run, path: Place, properties: Assignments) -> None:
    """Set table properties, including delta.feature.NAME=supported."""
    version = run.newest(path).alter.set_table_properties(pairs_of(properties, "KEY=VALUE"))
    _answer_properties(run, path, version)


def unset(run: Run, path: Place, names: Names, if_exists: IfExists = False) -> None:
    """Delete table properties."""
    version = run.newest(path).alter.unset_table_properties(names, if_exists=if_exists)
    _answer_properties(run, path, version)


def _answer_properties(run: Run, path: str, version: int) -> None:
    from pydelta_cli.formats.text_tables import Column

    properties = dict(run.table(path).metadata.configuration)

    def show() -> None:
        if properties:
            run.print_table([Column("property"), Column("value")], sorted(properties.items()))
        say(f"These are the properties of version {version}." if properties else f"Version {version} has no properties.")

    run.answer({"version": version, "properties": properties}, show)
