# %% [markdown]
# # Merges and partitions, written for deltalake, with one line changed
#
# The calls are those of deltalake's pages about merging and about partitions. Run it as cells, or as a script:
# `.venv/bin/python examples/from_deltalake_merges.py`. With the line `import deltalake` instead of the one below, the package
# deltalake runs it, with the same output.

# %%
import tempfile

import pandas as pd
import pyarrow as pa

import delta_py.as_deltalake as deltalake

home = tempfile.mkdtemp(prefix="from-deltalake-merges-")


def garden(name, **columns):
    deltalake.write_deltalake(f"{home}/{name}", pa.table(columns))
    return deltalake.DeltaTable(f"{home}/{name}")


def show(title, table, order):
    print(title, *table.to_pandas().sort_values(order).values.tolist(), sep="\n  ")


def merge(table, predicate="beds.plant = news.plant", **columns):
    return table.merge(source=pa.table(columns), predicate=predicate, source_alias="news", target_alias="beds")


# %% [markdown]
# ## Merges of one kind of clause, and of several

# %%
beds = garden("updated", plant=[1, 2, 3], height=[40, 50, 60])
merge(beds, plant=[2, 3], height=[55, 66]).when_matched_update(updates={"plant": "news.plant", "height": "news.height"}).execute()
show("updated", beds, "plant")
values = {"plant": "news.plant", "height": "news.height"}
merge(beds, plant=[3, 7], height=[0, 70]).when_not_matched_insert(updates=values).execute()
show("inserted", beds, "plant")
merge(beds, plant=[1, 2], dead=[False, True]).when_matched_delete(predicate="news.dead = true").execute()
show("deleted", beds, "plant")
news = {"plant": [3, 7, 9], "height": [61, 71, 91]}
merge(beds, **news).when_matched_update(updates=values).when_not_matched_insert(updates=values).execute()
show("upserted", beds, "plant")
clauses = merge(beds, plant=[3, 10], height=[62, 100]).when_matched_update(updates=values).when_not_matched_insert(updates=values)
done = clauses.when_not_matched_by_source_delete().execute()
show("and the others deleted", beds, "plant")
print("rows:", *(done[f"num_target_rows_{kind}"] for kind in ("inserted", "updated", "deleted", "copied")))
merge(beds, plant=[3, 11], height=[63, 110]).when_matched_update_all().when_not_matched_insert_all().execute()
show("all columns", beds, "plant")

# %% [markdown]
# ## The first clause that applies is taken

# %%
for first in ("delete", "update"):
    beds = garden(f"first_{first}", plant=[1, 2, 3], height=[40, 50, 60])
    merger = merge(beds, plant=[2, 3, 5], height=[52, 63, 85])
    if first == "delete":
        merger = merger.when_matched_delete(predicate="news.plant = beds.plant").when_matched_update(updates=values)
    else:
        merger = merger.when_matched_update(updates=values).when_matched_delete(predicate="news.plant = beds.plant")
    merger.execute()
    show(f"{first} first", beds, "plant")

# %% [markdown]
# ## Names that need quotes

# %%
beds = garden("quoted", **{"1 plant": [1, 2, 3], "1height": [40, 50, 60]})
merger = merge(beds, predicate="beds.`1 plant` = news.plant", plant=[2, 3, 4])
merger.when_not_matched_by_source_update(predicate="`1height` > 30", updates={"`1height`": "0"}).execute()
show("quoted", beds, "1 plant")

# %% [markdown]
# ## A table with partitions

# %%
path = f"{home}/parks"
parks = pd.DataFrame({"trees": [1, 2, 3], "park": ["a", "b", "c"], "city": ["Bonn", "Bonn", "Graz"]})
deltalake.write_deltalake(path, parks, partition_by=["city"])
table = deltalake.DeltaTable(path)
print("partitions:", table.metadata().partition_columns, sorted(part["city"] for part in table.partitions()))
print("in Bonn:", sorted(table.to_pandas(partitions=[("city", "=", "Bonn")])["park"]))
more = pd.DataFrame({"trees": [10, 20, 30], "park": ["x", "y", "z"], "city": ["Graz", "Lyon", "Lyon"]})
deltalake.write_deltalake(path, more, mode="append")
lyon = pd.DataFrame({"trees": [900, 1000], "park": ["m", "n"], "city": ["Lyon", "Lyon"]})
deltalake.write_deltalake(deltalake.DeltaTable(path), lyon, predicate="city = 'Lyon'", mode="overwrite")
table = deltalake.DeltaTable(path)
show("one partition replaced", table, "trees")
(
    table.merge(
        source=pd.DataFrame({"trees": [1, 101], "park": ["A", "B"], "city": ["Bonn", "Cork"]}),
        predicate="t.city = s.city AND t.trees = s.trees AND t.city in ('Bonn', 'Cork')",
        source_alias="s",
        target_alias="t",
    )
    .when_matched_update(updates={"park": "s.park"})
    .when_not_matched_insert_all()
    .execute()
)
show("merged by partitions", table, "trees")
table.delete("city = 'Bonn'")
print("without Bonn:", sorted(part["city"] for part in table.partitions()))
compacted = table.optimize.compact(partition_filters=[("city", "=", "Graz")])
print("compacted:", compacted["numFilesRemoved"], "to", compacted["numFilesAdded"])
land = pd.DataFrame({"trees": [1, 2], "park": ["a", "b"], "land": ["DE", "AT"]})
deltalake.write_deltalake(table, land, mode="overwrite", schema_mode="overwrite", partition_by=["land"])
print("partitioned anew:", deltalake.DeltaTable(path).metadata().partition_columns)
