"""GENERATE: writes files next to a table for engines without Delta.

    generate(store, "symlink_format_manifest")        # the number of written manifests

Protocol: Table Properties.
"""

from __future__ import annotations

from delta_py.commit.symlink_manifests import write_manifests
from delta_py.errors import InvalidOptionError
from delta_py.object_stores.open_store import refuse_in_transaction
from delta_py.storage.store import ObjectStore

SYMLINK_MANIFEST = "symlink_format_manifest"


def generate(store: ObjectStore, mode: str = SYMLINK_MANIFEST) -> int:
    """Write the files of a mode for the newest version of the table; returns the number of written files.

    Raises InvalidOptionError (DELTA_MODE_NOT_SUPPORTED) for another mode, UnsupportedOperationError in a transaction over several
    tables; else as write_manifests.
    """
    if mode.lower() != SYMLINK_MANIFEST:
        raise InvalidOptionError(
            f"There is no mode {mode!r} to generate; the only one is {SYMLINK_MANIFEST}.",
            error_class="DELTA_MODE_NOT_SUPPORTED",
            sql_state="0AKDC",
            mode=mode,
        )
    # Manifests would show the rows of an open transaction to everybody.
    refuse_in_transaction(store, "GENERATE for", "Nothing was written.")
    return write_manifests(store).written
