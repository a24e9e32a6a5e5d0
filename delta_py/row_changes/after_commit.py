"""The work after a commit that adds files, in commits of its own: auto compaction, and indexing of the new files."""

from __future__ import annotations

from delta_py.definition.request import AutoCompact
from delta_py.index_commands.index_upkeep import index_new_files
from delta_py.object_stores.open_store import is_in_transaction
from delta_py.optimize.auto_compact import compact_if_due
from delta_py.protocol.table_config import TableConfig
from delta_py.storage.store import ObjectStore
from delta_py.write.data_files import WrittenFiles


def after_commit(store: ObjectStore, config: TableConfig, version: int, written: WrittenFiles, auto_compact: AutoCompact) -> None:
    """Compact small files and index the new ones, each only if the table's settings ask for it. version: the committed one.
    written: the files that it added. config: the table at that version. Raises nothing, unless PYDELTA_POST_COMMIT_ERRORS is set.
    In a transaction over several tables, later commits do this work.
    """
    if is_in_transaction(store):
        return
    compact_if_due(store, config, version, written, auto_compact)
    index_new_files(store, config, version, written)
