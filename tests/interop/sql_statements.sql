-- changes
DELETE FROM {t} WHERE id = 3
delete from {t} as x where x.id = 4 and x.p = 1
DELETE FROM {t} x WHERE x.st.a = 5 OR x.v = 'it''s; --'
DELETE FROM {t} WHERE `odd.name` = 6
DELETE FROM {t} WHERE ts = timestamp'2024-01-08' AND d = 1.75
DELETE FROM {t} WHERE id = 1000
DELETE FROM {t} WHERE NULL
DELETE FROM {t} WHERE false
DELETE FROM {t} WHERE p = 2 AND id < 20
/* a /* b */ c */ UPDATE {t} SET v = 'new' WHERE id = 10 -- d
UPDATE {t} AS x SET x.v = concat(x.v, '!'), n = n + 1 WHERE x.id < 12
UPDATE {t} SET st.b = 'field', `odd.name` = `odd.name` * 2 WHERE id BETWEEN 13 AND 15
UPDATE {t} SET n = DEFAULT WHERE id = 16
UPDATE {t} SET n = '17' WHERE id = 17
UPDATE {t} SET st = named_struct('a', 1, 'b', 'q'), arr = array(9), m = map('z', 3) WHERE id = 18
UPDATE {t} SET p = 9 WHERE id = 19
UPDATE {t} SET v = 'none' WHERE id = 1000
UPDATE {t} SET v = CASE WHEN id > 30 THEN 'big' ELSE v END
MERGE INTO {t} t USING sql_source s ON t.id = s.id WHEN MATCHED THEN UPDATE SET *
MERGE INTO {t} t USING sql_source s ON t.id = s.id WHEN NOT MATCHED THEN INSERT *
MERGE INTO {t} USING sql_source s ON {c}.id = s.id WHEN MATCHED AND s.id = 60 THEN DELETE
MERGE INTO {t} t USING (SELECT * FROM sql_source WHERE id > 66) s ON t.id = s.id AND t.p = s.p WHEN MATCHED THEN UPDATE SET v = s.v, t.n = s.n + t.n, st.b = 'merged'
MERGE INTO {t} t USING sql_source s ON t.id = s.id WHEN NOT MATCHED BY SOURCE AND t.id < 11 THEN DELETE WHEN NOT MATCHED BY SOURCE AND t.id < 13 THEN UPDATE SET v = 'left'
MERGE WITH SCHEMA EVOLUTION INTO {t} t USING (SELECT 200L AS id, 1 AS p, 'e' AS extra) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *
MERGE INTO {t} t USING (SELECT 1000 AS id) s ON t.id = s.id WHEN MATCHED THEN DELETE
DELETE FROM {t} WHERE extra = 'e'
DELETE FROM {t}
UPDATE {t} SET v = 'x'

-- refused
DELETE FROM {t} WHERE nope = 1
DELETE FROM {t} WHERE x.id = 1
DELETE FROM {t} WHERE id
DELETE FROM {t} WHERE rand() < 0.5
DELETE FROM {t} WHERE max(id) = 1
DELETE {t}
DELETE FROM {t} WHERE id = 1 LIMIT 1
UPDATE {t} SET nope = 1
UPDATE {t} SET v = nope
UPDATE {t} SET v = 1, v = 2
UPDATE {t} SET st = 1
UPDATE {t} SET st.a = 1, st = NULL
UPDATE {t} SET arr.x = 1
UPDATE {t} SET v = max(v)
UPDATE {t} v = 1
MERGE INTO {t} t USING sql_source s ON t.id = s.id
MERGE INTO {t} t USING sql_source s ON t.id = s.nope WHEN MATCHED THEN DELETE
MERGE INTO {t} t USING sql_source s ON id = 1 WHEN MATCHED THEN DELETE
MERGE INTO {t} t USING sql_source s ON t.id = s.id WHEN MATCHED THEN UPDATE SET nope = 1
MERGE INTO {t} t USING sql_source s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = s.nope
MERGE INTO {t} t USING sql_source s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = 'a', v = 'b'
MERGE INTO {t} t USING sql_source s ON t.id = s.id WHEN NOT MATCHED THEN INSERT (id, id) VALUES (1, 2)
MERGE INTO {t} t USING sql_source s ON t.id = s.id WHEN NOT MATCHED THEN INSERT (nope) VALUES (1)
MERGE INTO {t} t USING sql_source s ON t.id = s.id WHEN NOT MATCHED THEN INSERT (id, v) VALUES (1)
MERGE INTO {t} t USING sql_source s ON t.id = s.id WHEN MATCHED THEN DELETE WHEN MATCHED THEN UPDATE SET v = 'a'
MERGE INTO {t} t USING (SELECT 1 AS id, 2 AS q) s ON t.id = s.id WHEN NOT MATCHED BY SOURCE THEN UPDATE SET v = s.q
MERGE INTO {t} t USING (SELECT int(id % 2) AS id FROM range(10)) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = 'twice'
MERGE INTO {t} t USING nowhere s ON t.id = s.id WHEN MATCHED THEN DELETE
MERGE INTO {t} t USING sql_source s ON t.id IN (SELECT 1) WHEN MATCHED THEN DELETE
OPTIMIZE {t} WHERE id = 1
OPTIMIZE {t} WHERE nope = 1
OPTIMIZE {t} WHERE
OPTIMIZE {t} ZORDER BY (p)
OPTIMIZE {t} ZORDER BY (nope)
OPTIMIZE {t} ZORDER BY
OPTIMIZE {t} FULL
OPTIMIZE {t} FOO
VACUUM {t} RETAIN 0 HOURS
VACUUM {t} RETAIN x HOURS
VACUUM {t} RETAIN 1 DAYS
VACUUM {t} DRY
RESTORE TABLE {t} TO VERSION AS OF 99
RESTORE TABLE {t} TO TIMESTAMP AS OF '1999-01-01'
RESTORE TABLE {t} TO TIMESTAMP AS OF '2999-01-01'
RESTORE TABLE {t} TO TIMESTAMP AS OF 'no time'
RESTORE TABLE {t} VERSION
DESCRIBE HISTORY {t} LIMIT x
GENERATE nothing FOR TABLE {t}
GENERATE symlink_format_manifest {t}
REORG TABLE {t}
REORG TABLE {t} WHERE id = 1 APPLY (PURGE)
ALTER TABLE {t} DROP FEATURE nothing
ALTER TABLE {t} CLUSTER BY (id)

-- utilities
DESCRIBE HISTORY {t}
DESC HISTORY {t} LIMIT 1
DESCRIBE DETAIL {t}
desc detail {t}
DELETE FROM {t} WHERE id = 3
OPTIMIZE {t}
OPTIMIZE {t} WHERE p = 1
OPTIMIZE {t} WHERE p IN (1, 2) AND p < 9 ZORDER BY (id, v)
OPTIMIZE {t} ZORDER BY st.a
DELETE FROM {t} WHERE id = 7
REORG TABLE {t} APPLY (PURGE)
DELETE FROM {t} WHERE id = 8
REORG TABLE {t} WHERE p = 2 APPLY (PURGE)
RESTORE TABLE {t} TO VERSION AS OF 2
RESTORE {t} VERSION AS OF 3;
VACUUM {t}
VACUUM {t} RETAIN 200 HOURS
VACUUM {t} RETAIN 168 HOURS DRY RUN
VACUUM {t} DRY RUN
VACUUM {t} LITE

-- partitions
SHOW PARTITIONS {t} PARTITION (p = 1)
show partitions {t} partition (p = '2')
SHOW PARTITIONS {t} PARTITION (p = NULL)
SHOW PARTITIONS {t} PARTITION (p = 99)
SHOW PARTITIONS {t} PARTITION (P = 1)
SHOW PARTITIONS {t} PARTITION (id = 1)
SHOW PARTITIONS {t} PARTITION (p = 'x')
SHOW PARTITIONS {t} PARTITION (p)
DELETE FROM {t} WHERE p <> 0
SHOW PARTITIONS {t}
SHOW PARTITIONS {t} VERSION AS OF 1

-- table changes
DELETE FROM {t} WHERE id < 3
UPDATE {t} SET v = 'new' WHERE id = 10
SELECT id, v, _change_type, _commit_version FROM table_changes('{t}', 2) WHERE id < 20 ORDER BY ALL
SELECT id, v, _change_type, _commit_version FROM TABLE_CHANGES('{t}', 3, 3L) ORDER BY ALL
SELECT count(*), max(_commit_version) FROM table_changes('{t}', 1 + 1, 99)
SELECT _change_type, count(*) AS n FROM table_changes('{t}', '2000-01-01') GROUP BY ALL ORDER BY ALL
SELECT count(*) FROM table_changes('{t}', TIMESTAMP'2000-01-01 00:00:00') AS x(a, b, c, d, e, f, g, h, i, j, k, l, m) WHERE a = 1
WITH changed AS (SELECT DISTINCT id FROM table_changes('{t}', 3)) SELECT count(*) FROM range(60) WHERE id IN (SELECT id FROM changed)
SELECT * FROM table_changes('{t}', 9)
SELECT * FROM table_changes('{t}', 3, 2)
SELECT * FROM table_changes('{t}', '2999-01-01')
SELECT * FROM table_changes('{t}', 'no time')
SELECT * FROM table_changes('{t}', NULL)
SELECT * FROM table_changes('{t}', 1, NULL)
SELECT * FROM table_changes('{t}', 1.5)
SELECT * FROM table_changes('{t}', DATE'2000-01-01')
SELECT * FROM table_changes('{t}', (SELECT 1))
SELECT * FROM table_changes(concat('{t}', ''), 1)
SELECT * FROM table_changes(7, 1)
SELECT * FROM table_changes('nowhere', 1)
SELECT * FROM table_changes('a b', 1)
