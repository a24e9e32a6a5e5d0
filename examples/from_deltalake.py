# %% [markdown]
# # A program for deltalake, with one line changed
#
# Run it as cells, or as a script: `.venv/bin/python examples/from_deltalake.py`. With the line
# `import deltalake` instead of the one below, the package deltalake runs it, with the same output.

# %%
import datetime as dt
import tempfile

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa

import delta_py.as_deltalake as deltalake

path = tempfile.mkdtemp(prefix="from-deltalake-") + "/loans"


def show(title, rows):
    print(f"{title}:", *sorted(map(str, rows)), sep="\n  ")


# %% [markdown]
# ## Write a library's loans: a table that is partitioned, keeps its changes, and grows by a column

# %%
loans = pd.DataFrame(
    {
        "loan": [1, 2, 3, 4],
        "book": ["Emma", "Dracula", "Ulysses", "Emma"],
        "days out": [12, 3, 40, 21],
        "branch": ["north", "south", "north", "south"],
    }
)
deltalake.write_deltalake(path, loans, partition_by=["branch"], configuration={"delta.enableChangeDataFeed": "true"})
more = loans.assign(loan=[5, 6, 7, 8], returned=pd.Timestamp("2024-05-01 17:30"))
deltalake.write_deltalake(path, more, mode="append", schema_mode="merge")
table = deltalake.DeltaTable(path)
show("columns", (f"{field.name} {field.type.type}" for field in table.schema().fields))
print("partitions:", sorted(part["branch"] for part in table.partitions()), "version:", table.version())

# %% [markdown]
# ## Read it: pandas, pyarrow, duckdb, polars

# %%
show("in the south", table.to_pandas(partitions=[("branch", "=", "south")], columns=["loan", "book"]).values.tolist())
show("long loans", table.to_pyarrow_table(filters=[("days out", ">", 20)], columns=["loan"])["loan"].to_pylist())
dataset = table.to_pyarrow_dataset()
show("days by book", duckdb.sql('SELECT book, sum("days out")::int FROM dataset GROUP BY book').fetchall())
show("books", pl.scan_pyarrow_dataset(dataset).select("book").unique().collect()["book"])

# %% [markdown]
# ## Change rows: DELETE, UPDATE, and a MERGE in which two rows of the source match one loan

# %%
print("deleted:", table.delete("\"days out\" < 5 AND branch = 'south'")["num_deleted_rows"])
print("updated:", table.update({'"days out"': '"days out" + 1'}, predicate="book = 'Emma'")["num_updated_rows"])
desk = pa.table({"loan": [3, 3, 9], "book": ["Ulysses", "Ulysses", "Persuasion"], "event": ["note", "return", "lend"]})
merge = table.merge(desk, "t.loan = s.loan", source_alias="s", target_alias="t")
done = (
    merge.when_matched_update({"returned": "timestamp '2024-05-02 09:00:00'"}, predicate="s.event = 'return'")
    .when_not_matched_insert({"loan": "s.loan", "book": "s.book", '"days out"': "0", "branch": "'north'"})
    .execute()
)
print("merged:", done["num_target_rows_updated"], done["num_target_rows_inserted"])
show("loans", table.to_pandas().sort_values("loan")[["loan", "book", "days out", "branch"]].values.tolist())

# %% [markdown]
# ## Rules, and a part of the table written again

# %%
table.alter.add_constraint({"days_are_real": '"days out" >= 0'})
try:
    deltalake.write_deltalake(table, loans.assign(**{"days out": -1}), mode="append", schema_mode="merge")
except deltalake.exceptions.DeltaError as error:
    print("refused:", "Invalid data found" in str(error))
north = loans.query("branch == 'north'")
deltalake.write_deltalake(table, north, mode="overwrite", predicate="branch = 'north'", schema_mode="merge")
print("after the overwrite:", table.count(), "loans in", len(table.partitions()), "partitions")

# %% [markdown]
# ## The feed of its changes, and its history

# %%
changes = pl.from_arrow(pa.table(table.load_cdf(starting_version=2, ending_version=4)))
show("changes", changes.group_by("_commit_version", "_change_type").len().rows())
show("history", (f"{commit['version']} {commit['operation']}" for commit in table.history()))
old = deltalake.DeltaTable(path, version=0)
print("version 0:", old.count(), "loans")
old.load_as_version(dt.datetime.now(dt.UTC))
print("now:", old.version())

# %% [markdown]
# ## Maintenance

# %%
for day in range(3):
    deltalake.write_deltalake(table, loans.assign(loan=100 + day, returned=None), mode="append", schema_mode="merge")
compacted = table.optimize.compact(partition_filters=[("branch", "=", "south")])
print("compacted:", compacted["numFilesAdded"], "of", compacted["numFilesRemoved"])
table.optimize.z_order(["days out", "loan"])
table.create_checkpoint()
print("files that nobody needs:", len(table.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=True)) > 0)
table.restore(0)
print("restored:", table.count(), "loans in version", table.version())
