"""ALTER TABLE ... CLUSTER BY: set the columns by which a table is clustered from now on.

    cluster_by(store, ["day", "address.city"])     # -> version
    cluster_by(store, [])                          # CLUSTER BY NONE

Only the log changes. Later, OPTIMIZE clusters new files by the new columns, and OPTIMIZE FULL also the files that were clustered
by other columns.
Protocol: Writer Requirements for Clustered Table; Domain Metadata.
"""

from __future__ import annotations

from collections.abc import Sequence

from delta_py.commit.transaction import Transaction
from delta_py.definition.protocols import with_features
from delta_py.errors import SchemaMismatchError
from delta_py.protocol.clustering import clustering_columns, clustering_domain
from delta_py.protocol.table_config import Operation, TableConfig
from delta_py.snapshot import Snapshot
from delta_py.statistics.stats_columns import check_clustering
from delta_py.storage.store import ObjectStore


def cluster_by(store: ObjectStore, columns: Sequence[str]) -> int:
    """Cluster a table by columns, nested ones dotted, or by none; returns the version: the new one, or the newest if no column is
    given for a table that was never clustered.

    Raises SchemaMismatchError for a partitioned table (DELTA_ALTER_TABLE_CLUSTER_BY_ON_PARTITIONED_TABLE_NOT_ALLOWED), more than
    four columns or a column named twice (DELTA_CLUSTER_BY_INVALID_NUM_COLUMNS), a column that does not exist, one of a type
    without minimum and maximum (DELTA_CLUSTERING_COLUMNS_DATATYPE_NOT_SUPPORTED) or without statistics
    (DELTA_CLUSTERING_COLUMN_MISSING_STATS); what Transaction.commit raises. Nothing is changed then.
    """
    snapshot = Snapshot.load(store)
    config = snapshot.config
    if config.partition_columns:
        raise SchemaMismatchError(
            f"The table at {store.root} is partitioned by ({', '.join(config.partition_columns)}), and a table is either "
            "partitioned or clustered. Nothing was changed. Write its rows to a new table that is clustered.",
            error_class="DELTA_ALTER_TABLE_CLUSTER_BY_ON_PARTITIONED_TABLE_NOT_ALLOWED",
            sql_state="42000",
            partition_columns=list(config.partition_columns),
        )
    if not columns and not config.feature("clustering"):  # CLUSTER BY NONE, and the table was never clustered
        return snapshot.version
    domain = clustering_domain(snapshot.schema, columns, config.column_mapping_mode)
    check_clustering(config, domain)
    new_columns = clustering_columns(snapshot.schema, domain)
    old_columns = clustering_columns(snapshot.schema, snapshot.clustering_domain())
    transaction = Transaction(snapshot).set_domain(domain)
    protocol = with_features(snapshot.protocol, {"clustering"})
    if protocol != snapshot.protocol:
        TableConfig(protocol, snapshot.metadata).require(Operation.WRITE)
        transaction.set_protocol(protocol)
    parameters = {"oldClusteringColumns": ",".join(old_columns), "newClusteringColumns": ",".join(new_columns)}
    return transaction.commit("CLUSTER BY", parameters)
