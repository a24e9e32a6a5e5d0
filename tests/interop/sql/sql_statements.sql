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

-- reads
SELECT count(*), sum(id), max(ts) FROM {t}
SELECT * FROM {t} VERSION AS OF 2 ORDER BY id LIMIT 3
SELECT count(*) FROM {t} VERSION AS OF 1
SELECT count(*) FROM {t} VERSION AS OF '2'
SELECT count(*) FROM {t} FOR VERSION AS OF 2
SELECT count(*) FROM {t} FOR SYSTEM_VERSION AS OF 2 AS old WHERE old.p = 1
SELECT count(*) FROM {t} TIMESTAMP AS OF '2999-01-01'
SELECT count(*) FROM {t} TIMESTAMP AS OF '1999-01-01'
SELECT count(*) FROM {t} FOR SYSTEM_TIME AS OF '1999-01-01'
SELECT count(*) FROM {t} TIMESTAMP AS OF date_sub(DATE'1999-01-01', 1)
SELECT count(*) FROM {t} TIMESTAMP AS OF 'no time'
SELECT count(*) FROM {t} TIMESTAMP AS OF NULL
SELECT count(*) FROM {t} TIMESTAMP AS OF array(1)
SELECT count(*) FROM {t} TIMESTAMP AS OF rand()
SELECT count(*) FROM {t} TIMESTAMP AS OF id
SELECT count(*) FROM {t} TIMESTAMP AS OF (SELECT 'no time')
SELECT count(*) FROM {t} VERSION AS OF 99
SELECT count(*) FROM {t} VERSION AS OF -1
SELECT count(*) FROM {t} VERSION AS OF 1.5
SELECT count(*) FROM {t} VERSION AS OF 'x'
SELECT count(*) FROM {t} VERSION AS OF 1 TIMESTAMP AS OF '2020-01-01'
SELECT count(*) FROM {at:v2}
SELECT count(*) FROM {at:v1}
SELECT count(*) FROM {at:v99}
SELECT count(*) FROM {at:19990101000000000}
SELECT count(*) FROM {at:v2} VERSION AS OF 1
SELECT n.id FROM {t} VERSION AS OF 2 AS o JOIN {t} AS n ON o.id = n.id + 1 WHERE o.id < 4 ORDER BY n.id
SELECT count(*) FROM {t} AS n LEFT ANTI JOIN {t} VERSION AS OF 1 AS o ON o.id = n.id
SELECT id FROM {t} EXCEPT SELECT id FROM {t} VERSION AS OF 2 WHERE id <> 3
SELECT (SELECT max(id) FROM {t} VERSION AS OF 2), (SELECT count(*) FROM {t} VERSION AS OF 0)
WITH old AS (SELECT * FROM {t} VERSION AS OF 2 WHERE p = 2), low (a, b) AS (SELECT id, v FROM old WHERE id < 9) SELECT * FROM low ORDER BY a
SELECT p, count(*) AS c, sum(d) FROM {t} GROUP BY ROLLUP (p) ORDER BY p NULLS LAST, c
SELECT id, row_number() OVER (PARTITION BY p ORDER BY id DESC) AS r FROM {t} QUALIFY r = 1 ORDER BY id
SELECT p, rank() OVER (ORDER BY p) FROM {t} WHERE id < 3 ORDER BY ALL
SELECT st.a, arr[0], m['k'], `odd.name` FROM {t} WHERE st.b = 'x' AND `odd.name` IN (1, 2) ORDER BY 1
SELECT id, e FROM {t} LATERAL VIEW explode(arr) AS e WHERE id = 7 ORDER BY e
SELECT t.id, x.e FROM {t} t, LATERAL (SELECT explode(map_keys(t.m)) AS e) x WHERE t.id < 2 ORDER BY t.id
SELECT * FROM (SELECT p, n FROM {t}) PIVOT (count(n) FOR p IN (0, 1, 2))
SELECT count(*) FROM {t} TABLESAMPLE (100 PERCENT)
SELECT {c}.id FROM {t} WHERE {c}.id = 5
SELECT * EXCEPT (st, arr, m, ts) FROM {t} WHERE d = 1.25
FROM {t} |> WHERE id < 3 |> SELECT id, v |> ORDER BY id
TABLE {t} |> AGGREGATE count(*) AS c
SELECT nope FROM {t}
SELECT x.id FROM {t}
SELECT id FROM {t} o JOIN {t} n ON o.id = n.id
SELECT * FROM {gone:nowhere}
SELECT * FROM {gone:nowhere} VERSION AS OF 0
CREATE OR REPLACE TEMPORARY VIEW view_{s} AS SELECT id, v FROM {t} VERSION AS OF 2 WHERE id < 5
SELECT * FROM view_{s} ORDER BY id
SELECT count(*) FROM view_{s} VERSION AS OF 1
CREATE OR REPLACE TEMPORARY VIEW changes_{s} AS SELECT id, _change_type FROM table_changes('{t}', 2)
SELECT count(*) FROM changes_{s}
CACHE TABLE kept_{s} AS SELECT * FROM {t} WHERE p = 1
SELECT count(*) FROM kept_{s}
UNCACHE TABLE kept_{s}
DECLARE OR REPLACE VARIABLE wanted INT DEFAULT 3
SELECT id FROM {t} WHERE id = wanted
SET VAR wanted = (SELECT CAST(max(id) AS INT) FROM {t})
SELECT wanted
DELETE FROM {t} WHERE id = wanted
SELECT count(*) FROM {t} t WHERE EXISTS (SELECT 1 FROM {t} VERSION AS OF 2 o WHERE o.id = t.id + 1)
EXECUTE IMMEDIATE 'SELECT count(*) FROM {t} WHERE id > ?' USING 50
SELECT count(*) FROM IDENTIFIER('{t}')

-- inserts
INSERT INTO {t} SELECT * FROM sql_source
INSERT INTO TABLE {t} (id, v) VALUES (100, 'a'), (101, 'b')
insert into {t} (v, id, p) values ('c', 102, 1)
INSERT INTO {t} (id, p, v, n) VALUES (103, 0, 'd', DEFAULT)
INSERT INTO {t} (id, p, n) SELECT 104, 2, 5
INSERT INTO {t} VALUES (105, 1, 'e', DEFAULT, named_struct('a', 1, 'b', 'y'), array(1), map('q', 1), timestamp'2024-02-01', 1.5, 8)
INSERT INTO {t} BY NAME SELECT 'f' AS v, 106L AS id, 1 AS p
INSERT INTO {t} BY NAME SELECT 107 AS ID, '8' AS V
INSERT INTO {t} PARTITION (p = 1) (id, v) VALUES (108, 'g')
INSERT INTO {t} PARTITION (p) (id, v, p) SELECT 109, 'h', 2
INSERT INTO {t} PARTITION (p = '2') BY NAME SELECT 110 AS id
INSERT INTO {t} (id, p, st) SELECT 111, 0, named_struct('x', 5, 'y', 'z')
INSERT INTO {t} (id, p, d) VALUES (112, 0, 1.005), (113, 0, 2)
INSERT INTO {t} (id, p, ts) VALUES (114, 0, '2024-05-06 07:08:09'), (115, 0, DATE'2024-05-06')
INSERT INTO {t} (id, p, n) VALUES (116, 0, 4L)
INSERT INTO {t} (id, `odd.name`, p) SELECT id, int(id), 0 FROM range(117, 119)
INSERT INTO {t} (id) TABLE sql_ids
INSERT INTO {t} (id, v) FROM sql_source SELECT id + 1000, v WHERE id = 51
FROM sql_source INSERT INTO {t} (id, v) SELECT id + 2000, v WHERE id = 51
WITH s AS (SELECT 120 AS id) INSERT INTO {t} (id) SELECT id FROM s
INSERT INTO {t} (id) WITH s AS (SELECT 121 AS id) SELECT id FROM s
INSERT INTO {t} (id, v) SELECT id + 3000, concat(v, v) FROM {t} WHERE id < 2
INSERT INTO {t} (id) SELECT id FROM range(0)
INSERT OVERWRITE {t} PARTITION (p = 2) (id, v) VALUES (2, 'only')
INSERT OVERWRITE TABLE {t} PARTITION (p = 7) (id) VALUES (7)
INSERT OVERWRITE {t} PARTITION (p = 7) BY NAME SELECT 8 AS id, 'x' AS v
INSERT INTO {t} (id, p, v) REPLACE WHERE p = 7 VALUES (9, 7, 'y')
INSERT INTO {t} REPLACE WHERE id >= 100 AND p = 0 SELECT * FROM {t} VERSION AS OF 2 WHERE id < 0
INSERT INTO {t} BY NAME REPLACE WHERE id = 50 SELECT 50 AS id, 2 AS p, 'r' AS v
INSERT INTO {t} REPLACE WHERE v LIKE 's%' AND id < 55 SELECT * FROM sql_source WHERE id < 52
SET spark.sql.sources.partitionOverwriteMode = dynamic
INSERT OVERWRITE {t} (id, p, v) SELECT 11, 7, 'dynamic'
INSERT OVERWRITE {t} PARTITION (p) (id, v, p) VALUES (12, 'dyn', 8)
RESET spark.sql.sources.partitionOverwriteMode
INSERT WITH SCHEMA EVOLUTION INTO {t} BY NAME SELECT 201 AS id, 1 AS p, true AS gift
INSERT WITH SCHEMA EVOLUTION INTO {t} SELECT *, false, 'more' AS further FROM sql_source WHERE id = 50
INSERT INTO {t} (id, gift) VALUES (202, NULL)
INSERT OVERWRITE {t} SELECT * FROM {t} WHERE id < 5
INSERT OVERWRITE {t} (id, v) VALUES (1, 'last')
INSERT OVERWRITE {t} BY NAME SELECT 2 AS id, 'named' AS v

-- inserts refused
INSERT INTO {t} VALUES (1)
INSERT INTO {t} SELECT 1, 2, 3
INSERT INTO {t} SELECT *, 1 FROM sql_source
INSERT INTO {t} (id, v) VALUES (1)
INSERT INTO {t} (id, v) VALUES (1, 'a', 2)
INSERT INTO {t} (id, id) VALUES (1, 2)
INSERT INTO {t} (id, ID) VALUES (1, 2)
INSERT INTO {t} (nope) VALUES (1)
INSERT INTO {t} (st.a) VALUES (1)
INSERT INTO {t} BY NAME SELECT 1 AS id, 2 AS nope
INSERT INTO {t} BY NAME SELECT 1 AS id, 2 AS id
INSERT INTO {t} (id) BY NAME SELECT 1 AS id
INSERT INTO {t} (id, n) VALUES (1, 'x')
INSERT INTO {t} (id, n) VALUES (1, 3000000000)
INSERT INTO {t} (id, arr) VALUES (1, map('a', 1))
INSERT INTO {t} (id, st) VALUES (1, named_struct('a', 1))
INSERT INTO {t} (id, st) VALUES (1, 5)
INSERT INTO {t} (id, ts) VALUES (1, 5)
INSERT INTO {t} (id, ts) VALUES (1, 'no time')
INSERT INTO {t} (id, d) VALUES (1, 123456789.5)
INSERT INTO {t} PARTITION (nope = 1) (id) VALUES (1)
INSERT INTO {t} PARTITION (id = 1) (v) VALUES ('a')
INSERT INTO {t} PARTITION (p = 1) (id, p) VALUES (1, 1)
INSERT INTO {t} PARTITION (p = 'x') (id) VALUES (1)
INSERT OVERWRITE {t} PARTITION (p = 1) IF NOT EXISTS SELECT * FROM sql_source
INSERT INTO {t} REPLACE WHERE nope = 1 SELECT * FROM sql_source
INSERT INTO {t} REPLACE WHERE p = 1 SELECT * FROM sql_source
INSERT INTO {t} REPLACE WHERE id = 99999 SELECT * FROM sql_source
INSERT INTO {gone:nowhere} VALUES (1)
INSERT INTO {t} SELECT * FROM nowhere
INSERT INTO {t} (id) SELECT nope FROM sql_source
INSERT INTO {t}
INSERT {t} VALUES (1)
INSERT INTO {t} (id) VALUES
INSERT OVERWRITE INTO {t} VALUES (1)
INSERT INTO {t} VERSION AS OF 1 VALUES (1)

-- tables
CREATE TABLE {new:a} (id INT, v STRING) USING {f}
CREATE TABLE {new:a} (id INT) USING {f}
CREATE TABLE IF NOT EXISTS {new:a} (other INT) USING {f}
REPLACE TABLE {new:a} (id BIGINT NOT NULL COMMENT 'the key', day DATE, v STRING) USING {f} PARTITIONED BY (day) COMMENT 'rows' TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true', 'own' = 'x y')
INSERT INTO {new:a} VALUES (1, DATE'2024-01-01', 'a')
REPLACE TABLE {new:a} (id INT) USING {f}
REPLACE TABLE {new:b} (id INT) USING {f}
CREATE OR REPLACE TABLE {new:b} (id INT, v STRING) USING {f} CLUSTER BY (id)
CREATE TABLE {new:c} USING {f} AS SELECT id, v, p FROM {t} WHERE id < 4
CREATE TABLE {new:d} USING {f} PARTITIONED BY (p) TBLPROPERTIES ('delta.appendOnly' = 'true') COMMENT 'from rows' AS SELECT id, v, p FROM {t} WHERE id < 4
CREATE TABLE {new:d} USING {f} AS SELECT 1 AS x
CREATE TABLE IF NOT EXISTS {new:d} USING {f} AS SELECT 1 AS x
CREATE OR REPLACE TABLE {new:c} USING {f} CLUSTER BY (id) AS SELECT id, d FROM {t} WHERE id < 6
REPLACE TABLE {new:c} USING {f} AS WITH s AS (SELECT 1 AS one) SELECT one, 'x' AS v FROM s
CREATE OR REPLACE TABLE {new:c} USING {f} AS SELECT * FROM {new:c}
REPLACE TABLE {new:gone} USING {f} AS SELECT 1 AS one
CREATE TABLE {new:e} (id INT, big BIGINT GENERATED ALWAYS AS (id * 2L), at TIMESTAMP, day DATE GENERATED ALWAYS AS (CAST(at AS DATE))) USING {f} PARTITIONED BY (day)
CREATE TABLE {new:f} (id BIGINT GENERATED ALWAYS AS IDENTITY (START WITH 5 INCREMENT BY 2), k BIGINT GENERATED BY DEFAULT AS IDENTITY, v STRING) USING {f}
CREATE TABLE {new:g} (id INT, v STRING DEFAULT 'x', w INT DEFAULT 1 + 1) USING {f} TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported')
CREATE TABLE {new:h} (id INT, v STRING DEFAULT 'x') USING {f}
CREATE TABLE {new:w} (id INT, x INT DEFAULT nope) USING {f} TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported')
CREATE TABLE {new:w} (id INT, x INT DEFAULT 'y') USING {f} TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported')
CREATE TABLE {new:w} (id INT, x DOUBLE DEFAULT rand()) USING {f} TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported')
CREATE TABLE {new:w} (id INT, x INT DEFAULT (SELECT 1)) USING {f} TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported')
CREATE TABLE {new:w} (id INT, x BOOLEAN DEFAULT 1) USING {f} TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported')
CREATE TABLE {new:w} (id INT, x VARCHAR(3) DEFAULT 'toolong') USING {f} TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported')
CREATE TABLE {new:w} (id INT, x STRING GENERATED ALWAYS AS (id + 1)) USING {f}
CREATE TABLE {new:w} (id INT, x BIGINT GENERATED ALWAYS AS (id + 1)) USING {f}
CREATE TABLE {new:w} (id INT, x INT DEFAULT '7', y INT DEFAULT 1.5, z STRING DEFAULT 5) USING {f} TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported')
INSERT INTO {new:w} (id) VALUES (1)
CREATE TABLE {new:ww} (id INT, s STRUCT<a: INT, b: ARRAY<STRING>> DEFAULT named_struct('a', 1, 'b', array('x')), l ARRAY<BIGINT> DEFAULT array(1, 2), m MAP<STRING, INT> DEFAULT map('k', 1)) USING {f} TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported')
INSERT INTO {new:ww} (id) VALUES (1)
INSERT INTO {new:ww} VALUES (2, DEFAULT, DEFAULT, DEFAULT)
ALTER TABLE {new:ww} ALTER COLUMN s SET DEFAULT named_struct('x', 2, 'y', array())
ALTER TABLE {new:ww} ALTER COLUMN l SET DEFAULT CAST(array('7') AS ARRAY<BIGINT>)
ALTER TABLE {new:ww} ALTER COLUMN s SET DEFAULT named_struct('a', 'x', 'b', array())
ALTER TABLE {new:ww} ALTER COLUMN m SET DEFAULT map(1, 'x')
INSERT INTO {new:ww} (id) VALUES (3)
UPDATE {new:ww} SET s = DEFAULT, m = DEFAULT WHERE id = 1
MERGE INTO {new:ww} t USING (SELECT 9 AS id) s ON t.id = s.id WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id)
CREATE OR REPLACE TABLE {new:w} (id INT, x INT DEFAULT 'y') USING {f} TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported')
REPLACE TABLE {new:w} (id INT, x INT DEFAULT nope) USING {f} TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported')
CREATE TABLE {new:i} (c CHAR(3), w VARCHAR(4), d DECIMAL(38, 18), b BINARY, x DOUBLE, f FLOAT, s SMALLINT, t TINYINT, o BOOLEAN, n TIMESTAMP_NTZ) USING {f}
CREATE TABLE {new:j} (st STRUCT<a: INT NOT NULL COMMENT 'inner', b: ARRAY<STRUCT<c: MAP<STRING, INT>>>>) USING {f}
CREATE TABLE {new:k} (`a b` INT) USING {f}
CREATE TABLE {new:k} (`a b` INT) USING {f} TBLPROPERTIES ('delta.columnMapping.mode' = 'name')
CREATE TABLE {new:l} (id INT, ID INT) USING {f}
CREATE TABLE {new:m} (id INT) USING {f} PARTITIONED BY (nope)
CREATE TABLE {new:m} (id INT) USING {f} PARTITIONED BY (id)
CREATE TABLE {new:n} (id INT, a ARRAY<INT>) USING {f} PARTITIONED BY (a)
CREATE TABLE {new:n} (id INT) USING {f} CLUSTER BY (nope)
CREATE TABLE {new:n} (id INT, p INT) USING {f} PARTITIONED BY (p) CLUSTER BY (id)
CREATE TABLE {new:n} (id INT, at TIMESTAMP) USING {f} PARTITIONED BY (days(at))
CREATE TABLE {new:n} (id INT) USING {f} TBLPROPERTIES ('delta.nope' = 'x')
CREATE TABLE {new:n} (id INT) USING {f} TBLPROPERTIES ('delta.appendOnly' = 'maybe')
CREATE TABLE {new:n} (id INT) USING {f} TBLPROPERTIES ('delta.feature.nope' = 'supported')
CREATE TABLE {new:n} (id INT GENERATED ALWAYS AS IDENTITY) USING {f}
CREATE TABLE {new:n} (id BIGINT GENERATED ALWAYS AS IDENTITY (INCREMENT BY 0)) USING {f}
CREATE TABLE {new:n} (id INT, x INT GENERATED ALWAYS AS (nope + 1)) USING {f}
CREATE TABLE {new:n} (id INT, x INT GENERATED ALWAYS AS (rand())) USING {f}
CREATE TABLE {new:n} (id INT, x INT GENERATED ALWAYS AS (id + 1), y INT GENERATED ALWAYS AS (x + 1)) USING {f}
CREATE TABLE {new:n} (id INT
CREATE TABLE {new:n} (id NOTATYPE) USING {f}
CREATE TABLE {new:n} () USING {f}
CREATE TABLE {new:o} USING {f} AS SELECT 1 AS x, 2 AS x
CREATE TABLE {new:o} USING {f} AS SELECT 1 AS x, NULL AS y
CREATE TABLE {new:o} (id INT) USING {f} AS SELECT 1 AS id
CREATE TABLE {new:o} USING {f} AS SELECT nope FROM {t}
CREATE TABLE {new:oo} USING {f} PARTITIONED BY (nope) AS SELECT 1 AS id
CREATE TABLE {new:p} USING {f} AS SELECT id, p, CAST(d AS DECIMAL(5, 1)) AS d, array(st) AS l FROM {t} WHERE id < 0
CREATE TABLE {new:q} SHALLOW CLONE {t}
CREATE TABLE {new:q} SHALLOW CLONE {t}
CREATE TABLE {new:r} SHALLOW CLONE {gone:nowhere}
CREATE TABLE {new:r} SHALLOW CLONE {t} VERSION AS OF 99
CREATE TABLE {new:r} SHALLOW CLONE {t} TIMESTAMP AS OF '1999-01-01'
CREATE TABLE {new:u} LIKE {t}
CREATE TABLE {new:u} LIKE {t}
CREATE TABLE IF NOT EXISTS {new:u} LIKE {t}
CREATE TABLE {new:v} LIKE {gone:nowhere}
CREATE TABLE {new:nc} USING {f} TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true') COMMENT 'soon'
DESCRIBE {new:nc}
DELETE FROM {new:nc}
DELETE FROM {new:nc} WHERE a = 1
CREATE TABLE {new:nc} USING {f}
CREATE TABLE IF NOT EXISTS {new:nc} USING {f}
REPLACE TABLE {new:nc} USING {f}
CREATE OR REPLACE TABLE {new:nc} USING {f}
INSERT INTO {new:nc} SELECT 1 AS a
OPTIMIZE {new:nc}
ALTER TABLE {new:nc} ADD COLUMNS (a INT, b STRING)
DESCRIBE {new:nc}
INSERT INTO {new:nc} VALUES (1, 'x')
SELECT * FROM {new:nc}
CREATE TABLE {new:nd} USING {f} PARTITIONED BY (a)
CREATE TABLE {new:nd} USING {f} CLUSTER BY (a)
CREATE OR REPLACE TABLE {new:nd} USING {f}
CREATE TABLE {new:nd} USING {f} TBLPROPERTIES ('delta.columnMapping.mode' = 'name')
INSERT WITH SCHEMA EVOLUTION INTO {new:nd} BY NAME SELECT 1 AS a
SELECT * FROM {new:nd}

-- alterations
ALTER TABLE {t} ADD COLUMN one INT
ALTER TABLE {t} ADD COLUMNS (two STRING COMMENT 'second' AFTER id, three DOUBLE FIRST)
ALTER TABLE {t} ADD COLUMNS (st.c INT, st.d STRING FIRST)
ALTER TABLE {t} ADD COLUMN id INT
ALTER TABLE {t} ADD COLUMN nope.x INT
ALTER TABLE {t} ADD COLUMN four INT AFTER nope
ALTER TABLE {t} ADD COLUMN five INT NOT NULL
ALTER TABLE {t} ADD COLUMN six INT DEFAULT 3
ALTER TABLE {t} ADD COLUMN seven NOTATYPE
ALTER TABLE {t} RENAME COLUMN one TO uno
ALTER TABLE {t} RENAME COLUMN st.b TO bb
ALTER TABLE {t} RENAME COLUMN nope TO x
ALTER TABLE {t} RENAME COLUMN uno TO id
ALTER TABLE {t} DROP COLUMN uno
ALTER TABLE {t} DROP COLUMNS (two, three)
ALTER TABLE {t} DROP COLUMN nope
ALTER TABLE {t} DROP COLUMN IF EXISTS nope
ALTER TABLE {t} DROP COLUMN p
ALTER TABLE {t} DROP COLUMN st.d
ALTER TABLE {t} ALTER COLUMN v COMMENT 'a text'
ALTER TABLE {t} ALTER COLUMN v FIRST
ALTER TABLE {t} ALTER COLUMN v AFTER n
ALTER TABLE {t} CHANGE COLUMN v v STRING COMMENT 'changed'
ALTER TABLE {t} ALTER COLUMN v SET DEFAULT 'dd'
ALTER TABLE {t} ALTER COLUMN v DROP DEFAULT
ALTER TABLE {t} ALTER COLUMN v SET DEFAULT nope
ALTER TABLE {t} ALTER COLUMN n SET DEFAULT 'y'
ALTER TABLE {t} ADD COLUMN eight INT DEFAULT nope
ALTER TABLE {t} ALTER COLUMN n TYPE BIGINT
ALTER TABLE {t} ALTER COLUMN n TYPE STRING
ALTER TABLE {t} ALTER COLUMN n SET NOT NULL
ALTER TABLE {t} ALTER COLUMN n DROP NOT NULL
ALTER TABLE {t} ALTER COLUMN nope COMMENT 'x'
ALTER TABLE {t} ALTER COLUMN d TYPE DECIMAL(12, 2)
ALTER TABLE {t} SET TBLPROPERTIES ('delta.enableTypeWidening' = 'true')
ALTER TABLE {t} ALTER COLUMN d TYPE DECIMAL(12, 2)
ALTER TABLE {t} ALTER COLUMN n TYPE BIGINT
INSERT INTO {t} (id, p, n) VALUES (500, 1, 5000000000)
ALTER TABLE {t} ALTER COLUMN n TYPE INT
ALTER TABLE {t} REPLACE COLUMNS (x INT)
ALTER TABLE {t} SET TBLPROPERTIES ('own' = 'a', 'Other' = 'b')
ALTER TABLE {t} UNSET TBLPROPERTIES ('own')
ALTER TABLE {t} UNSET TBLPROPERTIES ('nope')
ALTER TABLE {t} UNSET TBLPROPERTIES IF EXISTS ('nope')
ALTER TABLE {t} SET TBLPROPERTIES ('delta.nope' = 'x')
ALTER TABLE {t} SET TBLPROPERTIES ('delta.appendOnly' = 'maybe')
ALTER TABLE {t} SET TBLPROPERTIES ('delta.columnMapping.mode' = 'id')
ALTER TABLE {t} SET TBLPROPERTIES ('delta.feature.nope' = 'supported')
ALTER TABLE {t} SET TBLPROPERTIES ('delta.feature.v2Checkpoint' = 'supported')
ALTER TABLE {t} SET TBLPROPERTIES ('location' = '/x')
ALTER TABLE {t} SET TBLPROPERTIES ('comment' = 'via properties')
ALTER TABLE {t} ADD CONSTRAINT low CHECK (id < 1000)
ALTER TABLE {t} ADD CONSTRAINT low CHECK (id < 2000)
ALTER TABLE {t} ADD CONSTRAINT high CHECK (id > 10)
ALTER TABLE {t} ADD CONSTRAINT strange CHECK (nope > 10)
ALTER TABLE {t} ADD CONSTRAINT text CHECK (id)
ALTER TABLE {t} ADD CONSTRAINT sub CHECK (id IN (SELECT 1))
INSERT INTO {t} (id, p) VALUES (1001, 1)
UPDATE {t} SET id = 1001 WHERE id = 5
ALTER TABLE {t} DROP COLUMN id
ALTER TABLE {t} RENAME COLUMN id TO key
ALTER TABLE {t} DROP CONSTRAINT low
ALTER TABLE {t} DROP CONSTRAINT low
ALTER TABLE {t} DROP CONSTRAINT IF EXISTS low
ALTER TABLE {t} ADD CONSTRAINT pk PRIMARY KEY (id)
ALTER TABLE {t} CLUSTER BY (id)
ALTER TABLE {t} CLUSTER BY NONE
ALTER TABLE {t} ALTER COLUMN id SYNC IDENTITY
ALTER TABLE {t} DROP FEATURE appendOnly
ALTER TABLE {t} DROP FEATURE vacuumProtocolCheck
ALTER TABLE {t} DROP FEATURE v2Checkpoint
ALTER TABLE {t} ADD PARTITION (p = 9)
ALTER TABLE {t} DROP PARTITION (p = 1)
ALTER TABLE {t} RENAME TO other
ALTER TABLE {t} SET LOCATION '/x'
ALTER TABLE {t} SET SERDE 'x'
ALTER TABLE {t} RECOVER PARTITIONS
ALTER TABLE {t} NOPE
ALTER TABLE {t} ADD COLUMN
ALTER TABLE {gone:nowhere} ADD COLUMN x INT
ALTER TABLE {gone:nowhere} SET TBLPROPERTIES ('a' = 'b')
COMMENT ON TABLE {t} IS 'all rows'
COMMENT ON TABLE {t} IS NULL
COMMENT ON COLUMN {t}.v IS 'a word'
TRUNCATE TABLE {t} PARTITION (p = 1)
TRUNCATE TABLE {t}
TRUNCATE TABLE {gone:nowhere}

-- shown
SHOW TBLPROPERTIES {t}
SHOW TBLPROPERTIES {t} ('delta.enableChangeDataFeed')
SHOW COLUMNS IN {t}
SHOW CREATE TABLE {t}
DESCRIBE {t}
DESCRIBE TABLE {t}
DESCRIBE {t} v
DESCRIBE {t} st.a
DESCRIBE {t} nope
DESCRIBE {t} PARTITION (p = 1)
DESCRIBE QUERY SELECT id, v FROM {t}
DESCRIBE {gone:nowhere}
DESCRIBE DETAIL {gone:nowhere}
DESCRIBE HISTORY {gone:nowhere}
DESCRIBE HISTORY {t} LIMIT 0
DESCRIBE HISTORY {t} LIMIT -1
DESCRIBE HISTORY {t} WHERE version = 1
SHOW PARTITIONS {gone:nowhere}
ANALYZE TABLE {t} COMPUTE STATISTICS
ANALYZE TABLE {t} COMPUTE STATISTICS NOSCAN
ANALYZE TABLE {t} COMPUTE STATISTICS FOR COLUMNS id
REFRESH TABLE {t}
MSCK REPAIR TABLE {t}
LOAD DATA INPATH '/nowhere' INTO TABLE {t}

-- ruled
INSERT INTO {t} (at, price) VALUES (timestamp'2024-03-01 10:00:00', 5)
INSERT INTO {t} (at, price, note, qty) SELECT timestamp'2024-03-02 11:00:00', 6.5, DEFAULT, 2
INSERT INTO {t} (k, at, price) VALUES (1000, timestamp'2024-03-03', 7)
INSERT INTO {t} (day, at, price) VALUES (DATE'2024-03-04', timestamp'2024-03-04', 8)
INSERT INTO {t} BY NAME SELECT timestamp'2024-03-05' AS at, 9 AS price, 'abc' AS code, 'abcde' AS word
INSERT INTO {t} (price, code) VALUES (1, 'ab')
INSERT INTO {t} (at, price) VALUES (NULL, 2)
INSERT INTO {t} (a, at, price) VALUES (1, timestamp'2024-03-04', 8)
INSERT INTO {t} (day, at, price) VALUES (DATE'2024-03-05', timestamp'2024-03-04', 8)
INSERT INTO {t} (at) VALUES (timestamp'2024-03-04')
INSERT INTO {t} (at, price) VALUES (timestamp'2024-03-04', NULL)
INSERT INTO {t} (at, price) VALUES (timestamp'2024-03-04', 10000)
INSERT INTO {t} (price, code) VALUES (1, 'abcd')
INSERT INTO {t} (price, word) VALUES (1, 'abcdef')
INSERT INTO {t} (price, word) VALUES (1, 'abcde   ')
INSERT INTO {t} VALUES (1, 2, 3)
UPDATE {t} SET price = price + 1 WHERE qty = 2
UPDATE {t} SET at = timestamp'2025-01-01' WHERE price < 3
UPDATE {t} SET note = DEFAULT, qty = DEFAULT WHERE price > 7
UPDATE {t} SET price = 20000
UPDATE {t} SET price = NULL
UPDATE {t} SET day = DATE'2020-01-01'
UPDATE {t} SET a = 1
UPDATE {t} SET k = 1
UPDATE {t} SET code = 'abcd'
UPDATE {t} SET word = 'too long a word'
MERGE INTO {t} t USING (SELECT 9 AS price, 'm' AS note) s ON t.price = s.price WHEN MATCHED THEN UPDATE SET note = s.note
MERGE INTO {t} t USING (SELECT 77 AS price, timestamp'2024-06-01' AS at) s ON t.price = s.price WHEN NOT MATCHED THEN INSERT (price, at) VALUES (s.price, s.at)
MERGE INTO {t} t USING (SELECT 79 AS price) s ON t.price = s.price WHEN NOT MATCHED THEN INSERT (price, a) VALUES (s.price, 4)
MERGE INTO {t} t USING (SELECT 20000 AS price) s ON t.price = s.price WHEN NOT MATCHED THEN INSERT (price) VALUES (s.price)
MERGE INTO {t} t USING (SELECT 80 AS qty) s ON t.qty = s.qty WHEN NOT MATCHED THEN INSERT (qty) VALUES (s.qty)
MERGE INTO {t} t USING (SELECT 80 AS qty) s ON t.qty = s.qty WHEN NOT MATCHED THEN INSERT *
MERGE INTO {t} t USING (SELECT 77 AS price) s ON t.price = s.price WHEN MATCHED THEN UPDATE SET price = 30000
MERGE INTO {t} t USING (SELECT 77 AS price) s ON t.price = s.price WHEN MATCHED THEN UPDATE SET a = 4
MERGE INTO {t} t USING (SELECT 77 AS price) s ON t.price = s.price WHEN NOT MATCHED BY SOURCE AND t.note = 'm' THEN DELETE
INSERT OVERWRITE {t} PARTITION (day = '2024-03-01') (at, price) VALUES (timestamp'2024-03-01 12:00:00', 3)
INSERT OVERWRITE {t} PARTITION (day = '2024-03-01') (at, price) VALUES (timestamp'2024-03-02 12:00:00', 3)
INSERT INTO {t} (at, price) REPLACE WHERE day = '2024-03-02' VALUES (timestamp'2024-03-02 12:00:00', 4)
ALTER TABLE {t} ALTER COLUMN k SYNC IDENTITY
ALTER TABLE {t} ALTER COLUMN qty SYNC IDENTITY
INSERT INTO {t} (at, price) VALUES (timestamp'2024-07-01', 11)
ALTER TABLE {t} DROP COLUMN at
ALTER TABLE {t} ALTER COLUMN a COMMENT 'number'
ALTER TABLE {t} ALTER COLUMN price DROP NOT NULL
ALTER TABLE {t} ALTER COLUMN word TYPE VARCHAR(8)
ALTER TABLE {t} ALTER COLUMN word TYPE STRING
ALTER TABLE {t} DROP CONSTRAINT sane
SHOW TBLPROPERTIES {t}
DESCRIBE {t}
CREATE TABLE {new:like} LIKE {t}
CREATE TABLE {new:clone} SHALLOW CLONE {t}
INSERT INTO {new:clone} (at, price) VALUES (timestamp'2024-07-02', 12)
DELETE FROM {t} WHERE day = '2024-03-04' OR code = 'ab '
TRUNCATE TABLE {t}

-- more rows
DELETE FROM {t} t WHERE t.v LIKE 'v1_' AND t.arr[0] = 12
DELETE FROM {t} WHERE m['k'] = 13 OR array_contains(arr, 14)
DELETE FROM {t} WHERE CASE WHEN p = 0 THEN id = 15 ELSE false END
DELETE FROM {t} WHERE id BETWEEN 16 AND 17 AND v IS NOT NULL
DELETE FROM {t} WHERE (id, p) IN ((18, 0), (19, 1))
DELETE FROM {t} WHERE v = upper('v20') OR v = concat('v', 20)
DELETE FROM {t} WHERE ts > timestamp'2024-01-01 00:00:00' + INTERVAL '57' DAY
DELETE FROM {t} WHERE id = 1/0
DELETE FROM {t} WHERE v = 3
DELETE FROM {t} WHERE CAST(v AS INT) = 3
UPDATE {t} SET v = (SELECT max(v) FROM sql_source) WHERE id = 22
UPDATE {t} SET n = n + 1, v = concat(v, n) WHERE p = 1
UPDATE {t} SET arr = array_append(arr, 5), m = map_concat(m, map('z', 1)) WHERE id = 23
UPDATE {t} SET st = named_struct('a', st.a + 1, 'b', upper(st.b)) WHERE id = 24
UPDATE {t} SET st.a = NULL WHERE id = 25
UPDATE {t} SET id = id + 1000, p = p + 10 WHERE id > 45
UPDATE {t} SET d = 12.345 WHERE id = 26
UPDATE {t} SET d = 123456789.12 WHERE id = 26
UPDATE {t} SET n = 3000000000 WHERE id = 26
UPDATE {t} SET n = 'x' WHERE id = 26
UPDATE {t} SET ts = '2024-06-06' WHERE id = 27
UPDATE {t} SET `odd.name` = NULL, V = 'caps' WHERE ID = 28
UPDATE {t} SET
UPDATE {t} SET v = 'x' WHERE nope = 1
UPDATE {t} SET v = 'x' FROM sql_source
UPDATE {gone:nowhere} SET v = 'x'
DELETE FROM {gone:nowhere}
DELETE FROM {t} VERSION AS OF 1
DELETE FROM {t} WHERE
DELETE FROM sql_source WHERE id = 1
UPDATE sql_source SET v = 'x'
MERGE INTO sql_source t USING {t} s ON t.id = s.id WHEN MATCHED THEN DELETE
MERGE INTO {t} t USING {t} s ON t.id = s.id AND s.id < 26 WHEN MATCHED THEN UPDATE SET v = concat(s.v, '+')
MERGE INTO {t} t USING (SELECT * FROM {t} VERSION AS OF 2) s ON t.id = s.id WHEN NOT MATCHED AND s.id < 5 THEN INSERT *
MERGE INTO {t} AS t USING VALUES (30L, 'v30'), (31L, 'v31') AS s (id, w) ON t.id = s.id WHEN MATCHED AND s.w = 'v30' THEN DELETE WHEN MATCHED THEN UPDATE SET t.v = s.w, t.n = DEFAULT
MERGE INTO {t} t USING sql_source s ON t.id = s.id AND t.p = 1 WHEN MATCHED AND t.n > 10 THEN UPDATE SET * WHEN MATCHED THEN DELETE WHEN NOT MATCHED AND s.id = 69 THEN INSERT (id, v, p) VALUES (s.id, upper(s.v), 4) WHEN NOT MATCHED AND s.id = 68 THEN INSERT * WHEN NOT MATCHED BY SOURCE AND t.id = 33 THEN UPDATE SET v = 'alone'
MERGE INTO {t} t USING (SELECT CAST(NULL AS BIGINT) AS id) s ON t.id <=> s.id WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.id, 'null key')
MERGE INTO {t} t USING (SELECT 1 AS x) s ON false WHEN NOT MATCHED THEN INSERT (id, v) VALUES (400, 'never matches')
MERGE INTO {t} t USING (SELECT 34L AS id) s ON t.id > s.id AND t.id < 37 WHEN MATCHED THEN UPDATE SET st.b = 'range'
WITH s AS (SELECT 401L AS id, 'cte' AS v) MERGE INTO {t} t USING s ON t.id = s.id WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.id, s.v)
MERGE INTO {t} t USING sql_source s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED BY TARGET AND s.id > 100 THEN INSERT *
MERGE WITH SCHEMA EVOLUTION INTO {t} t USING (SELECT 402L AS id, named_struct('a', 1, 'b', 'x', 'c', 2.5) AS st) s ON t.id = s.id WHEN NOT MATCHED THEN INSERT *
MERGE WITH SCHEMA EVOLUTION INTO {t} t USING (SELECT 402L AS id, 'new' AS fresh) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET fresh = s.fresh
MERGE INTO {t} t USING (SELECT 402L AS id, 'x' AS unknown) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET *
MERGE INTO {t} t USING (SELECT 402L AS id) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET *
MERGE INTO {t} t USING (SELECT 402L AS id) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET unknown = 1
MERGE INTO {t} t USING sql_source t ON t.id = t.id WHEN MATCHED THEN DELETE
MERGE INTO {t} t USING sql_source s ON t.id = s.id WHEN MATCHED AND max(s.id) > 1 THEN DELETE
MERGE INTO {t} t USING sql_source s ON t.id = s.id WHEN MATCHED AND rand() > 0.5 THEN DELETE
MERGE INTO {t} t USING sql_source s ON t.id = s.id WHEN MATCHED THEN UPDATE
MERGE INTO {t} t USING sql_source s ON t.id = s.id WHEN NOT MATCHED THEN DELETE
MERGE INTO {t} t USING sql_source s ON t.id = s.id WHEN MATCHED THEN INSERT *
MERGE INTO {t} t USING sql_source s ON t.id = s.id WHEN NOT MATCHED THEN INSERT (id) VALUES (t.id)
MERGE INTO {t} t USING sql_source s ON s.id WHEN MATCHED THEN DELETE
MERGE INTO {t} t USING sql_source s WHEN MATCHED THEN DELETE
MERGE INTO {gone:nowhere} t USING sql_source s ON t.id = s.id WHEN MATCHED THEN DELETE

-- more upkeep
OPTIMIZE {gone:nowhere}
VACUUM {gone:nowhere}
RESTORE TABLE {gone:nowhere} TO VERSION AS OF 0
REORG TABLE {gone:nowhere} APPLY (PURGE)
GENERATE symlink_format_manifest FOR TABLE {gone:nowhere}
CONVERT TO DELTA parquet.`/nowhere/at/all`
CONVERT TO DELTA json.`/nowhere`
OPTIMIZE {t} WHERE p
OPTIMIZE {t} WHERE p = 'x'
OPTIMIZE {t} WHERE p = 1 AND id = 1
OPTIMIZE {t} WHERE p IN (SELECT 1)
OPTIMIZE {t} ZORDER BY (`odd.name`)
OPTIMIZE {t} WHERE p = 0 ZORDER BY n, v
OPTIMIZE {t} ZORDER (id)
optimize {t} /* nothing to do */
VACUUM {t} RETAIN 168.5 HOURS DRY RUN
VACUUM {t} USING INVENTORY (SELECT 1 AS x)
VACUUM {t} USING INVENTORY nowhere
VACUUM {t} FULL
VACUUM {t} FULL DRY RUN
VACUUM {t} LITE RETAIN 200 HOURS
VACUUM {t} NOW
VACUUM
RESTORE {t} TO VERSION AS OF 'x'
RESTORE {t} TO VERSION AS OF -1
RESTORE {t} TO VERSION AS OF 2
RESTORE {t} VERSION AS OF 1
RESTORE {t} FOR VERSION AS OF 2
RESTORE {t} TO
REORG TABLE {t} WHERE p = 1 APPLY (PURGE)
REORG TABLE {t} APPLY (NOPE)
GENERATE symlink_format_manifest FOR TABLE {t}
DESCRIBE HISTORY {t}
DESCRIBE DETAIL {t} LIMIT 1
ALTER TABLE {t} DROP FEATURE changeDataFeed
OPTIMIZE {t} FULL

-- views
CREATE OR REPLACE TEMPORARY VIEW v_{s} AS SELECT * FROM {t}
DELETE FROM v_{s} WHERE id = 1
UPDATE v_{s} SET v = 'z' WHERE v_{s}.id = 2
MERGE INTO v_{s} USING (SELECT 3 AS id, 'm' AS v) s ON v_{s}.id = s.id WHEN MATCHED THEN UPDATE SET v = s.v
CREATE OR REPLACE TEMPORARY VIEW w_{s} AS SELECT * FROM v_{s}
DELETE FROM w_{s} AS t WHERE t.id = 4
INSERT INTO v_{s} (id) VALUES (1)
CREATE OR REPLACE TEMPORARY VIEW v_{s} AS SELECT * FROM {t} WHERE id > 5
DELETE FROM v_{s} WHERE id = 6
UPDATE v_{s} SET v = 'z'
MERGE INTO v_{s} USING (SELECT 3 AS id, 'm' AS v) s ON v_{s}.id = s.id WHEN MATCHED THEN DELETE
CREATE OR REPLACE TEMPORARY VIEW v_{s} AS SELECT * FROM {t} VERSION AS OF 1
DELETE FROM v_{s} WHERE id = 6
CREATE OR REPLACE TEMPORARY VIEW v_{s} AS SELECT * FROM {t} LIMIT 3
DELETE FROM v_{s}
CREATE OR REPLACE TEMPORARY VIEW n_{s} AS SELECT id, v FROM {t}
DELETE FROM n_{s} WHERE id = 11
DELETE FROM n_{s} WHERE n = 20
MERGE INTO n_{s} USING (SELECT 12 AS id, 'm' AS v) s ON n_{s}.id = s.id WHEN MATCHED THEN UPDATE SET v = s.v
CREATE OR REPLACE TEMPORARY VIEW k_{s} AS SELECT upper(v) AS val, CAST(id AS STRING) AS key, st.a AS a, n + 1 AS more, * EXCEPT (id) FROM {t}
DELETE FROM k_{s} WHERE key = '12' AND val = 'V12' AND k_{s}.a = 12
DELETE FROM k_{s} AS x WHERE x.more = 131
CREATE OR REPLACE TEMPORARY VIEW o_{s} AS SELECT val, key FROM k_{s}
DELETE FROM o_{s} WHERE key = 14
CREATE OR REPLACE TEMPORARY VIEW o_{s} AS SELECT id, max(v) AS v FROM {t} GROUP BY id
DELETE FROM o_{s} WHERE id = 24
CREATE OR REPLACE TEMPORARY VIEW o_{s} AS SELECT * FROM {t} ORDER BY id
DELETE FROM o_{s} WHERE id = 24
CREATE OR REPLACE VIEW pv_{s} AS SELECT * FROM {t}
DELETE FROM pv_{s} WHERE id = 24
UPDATE pv_{s} SET v = 'z' WHERE id = 24
MERGE INTO pv_{s} USING (SELECT 3 AS id, 'm' AS v) s ON pv_{s}.id = s.id WHEN MATCHED THEN UPDATE SET v = s.v
INSERT INTO pv_{s} (id) VALUES (1)
DROP VIEW pv_{s}
OPTIMIZE n_{s}
DESCRIBE HISTORY n_{s}

-- more alterations
ALTER TABLE {t} ADD COLUMNS (m.value.x INT)
ALTER TABLE {t} ADD COLUMN arr.element.x INT
ALTER TABLE {t} ADD COLUMN (list ARRAY<STRUCT<a: INT, b: STRING>>, mp MAP<STRING, STRUCT<a: INT>>)
ALTER TABLE {t} ADD COLUMN list.element.c DOUBLE AFTER a
ALTER TABLE {t} ADD COLUMNS (mp.value.z STRING FIRST)
ALTER TABLE {t} ADD COLUMN mp.key.z STRING
ALTER TABLE {t} RENAME COLUMN list.element.b TO bb
ALTER TABLE {t} DROP COLUMN list.element.c
ALTER TABLE {t} DROP COLUMNS (mp.value.z, st.a)
ALTER TABLE {t} DROP COLUMN st.b
ALTER TABLE {t} ALTER COLUMN list.element.a COMMENT 'inner'
ALTER TABLE {t} ALTER COLUMN mp.value.a AFTER nope
ALTER TABLE {t} ALTER COLUMN list.element TYPE STRING
ALTER TABLE {t} ALTER COLUMN list.element.bb FIRST
ALTER TABLE {t} ALTER COLUMN arr.element TYPE BIGINT
ALTER TABLE {t} CHANGE COLUMN n nn INT
ALTER TABLE {t} CHANGE n n BIGINT COMMENT 'x' AFTER id
ALTER TABLE {t} CHANGE COLUMN n COMMENT 'only'
ALTER TABLE {t} CHANGE n n INT COMMENT 'x' AFTER id
ALTER TABLE {t} ALTER COLUMN v COMMENT 'a', COLUMN n COMMENT 'b'
ALTER TABLE {t} ALTER COLUMN v COMMENT 'a', n AFTER v
ALTER TABLE {t} ALTER COLUMN v SET NOT NULL
ALTER TABLE {t} ALTER v FIRST
ALTER TABLE {t} SET TBLPROPERTIES (delta.enableTypeWidening = true, delta.logRetentionDuration = 'interval 10 days')
ALTER TABLE {t} ALTER COLUMN arr.element TYPE BIGINT
ALTER TABLE {t} ALTER COLUMN m.value TYPE BIGINT
ALTER TABLE {t} ALTER COLUMN n TYPE DOUBLE
ALTER TABLE {t} ALTER COLUMN n TYPE DECIMAL(20, 2)
ALTER TABLE {t} ALTER COLUMN p TYPE BIGINT
ALTER TABLE {t} ALTER COLUMN ts TYPE DATE
ALTER TABLE {t} CHANGE COLUMN `odd.name` `odd.name` BIGINT
INSERT INTO {t} (id, arr, p) VALUES (70, array(5000000000), 1)
ALTER TABLE {t} ADD COLUMN vv VARIANT
ALTER TABLE {t} ADD COLUMN iv INTERVAL DAY TO SECOND
ALTER TABLE {t} ADD COLUMN ntz TIMESTAMP_NTZ
ALTER TABLE {t} ADD COLUMN IF NOT EXISTS v STRING
ALTER TABLE {t} ADD COLUMN w STRING GENERATED ALWAYS AS (concat('x', id))
ALTER TABLE {t} ADD COLUMN ident BIGINT GENERATED ALWAYS AS IDENTITY
ALTER TABLE {t} ADD COLUMN nn INT NOT NULL DEFAULT 3
ALTER TABLE {t} ADD CONSTRAINT c1 CHECK (id >= 0 OR list IS NULL)
ALTER TABLE {t} ADD CONSTRAINT c2 CHECK (list[0].zz > 0)
ALTER TABLE {t} ADD CONSTRAINT `my check` CHECK (id >= 0)
ALTER TABLE {t} ADD CONSTRAINT c4 CHECK (v LIKE 'w%')
ALTER TABLE {t} ADD CONSTRAINT C1 CHECK (id > 0)
ALTER TABLE {t} DROP CONSTRAINT `my check`
ALTER TABLE {t} RENAME COLUMN v TO ID
ALTER TABLE {t} RENAME COLUMN p TO part
ALTER TABLE {t} REPLACE COLUMNS (id BIGINT, v STRING)
ALTER TABLE {t} SET TBLPROPERTIES ()
ALTER TABLE {t} CLUSTER BY AUTO
ALTER TABLE {t} SET TBLPROPERTIES ('delta.minReaderVersion' = '9')
ALTER TABLE {t} SET TBLPROPERTIES ('delta.logRetentionDuration' = 'nonsense')
ALTER TABLE {t} SET TBLPROPERTIES ('delta.checkpointInterval' = '0')
ALTER TABLE {t} SET TBLPROPERTIES ('delta.dataSkippingNumIndexedCols' = '3')
ALTER TABLE {t} SET TBLPROPERTIES ('delta.dataSkippingStatsColumns' = 'id,v')
ALTER TABLE {t} SET TBLPROPERTIES ('delta.dataSkippingStatsColumns' = 'id,nope')
ALTER TABLE {t} UNSET TBLPROPERTIES IF EXISTS ('delta.logRetentionDuration', 'nope2')
DESCRIBE EXTENDED {t} v
SHOW COLUMNS {t}
DELETE FROM {t} WHERE part = 1

-- defaults
CREATE TABLE {new:de} (id INT, who STRING, x STRING, at TIMESTAMP, w VARCHAR(3)) USING {f} TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported')
ALTER TABLE {new:de} ALTER COLUMN who SET DEFAULT current_user()
ALTER TABLE {new:de} ALTER COLUMN x SET DEFAULT current_catalog()
INSERT INTO {new:de} (id) VALUES (1)
ALTER TABLE {new:de} ALTER COLUMN who SET DEFAULT session_user
ALTER TABLE {new:de} ALTER COLUMN x SET DEFAULT upper(user()) || '@' || current_schema()
INSERT INTO {new:de} (id, who) VALUES (2, DEFAULT)
MERGE INTO {new:de} t USING (SELECT 3 AS id) s ON t.id = s.id WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id)
ALTER TABLE {new:de} ALTER COLUMN who SET DEFAULT version()
UPDATE {new:de} SET who = DEFAULT WHERE id = 1
ALTER TABLE {new:de} ALTER COLUMN x SET DEFAULT current_timezone()
INSERT INTO {new:de} (id) SELECT id FROM range(4, 6)
ALTER TABLE {new:de} ALTER COLUMN x SET DEFAULT uuid()
ALTER TABLE {new:de} ALTER COLUMN x SET DEFAULT id
ALTER TABLE {new:de} ALTER COLUMN x SET DEFAULT max('a')
ALTER TABLE {new:de} ALTER COLUMN x SET DEFAULT (SELECT 'a')
ALTER TABLE {new:de} ALTER COLUMN w SET DEFAULT 'toolong'
ALTER TABLE {new:de} ADD COLUMN y VARCHAR(3) DEFAULT 'toolong'
CREATE TABLE {new:df} (id INT, who STRING DEFAULT current_user(), db STRING DEFAULT current_database()) USING {f} TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported')
INSERT INTO {new:df} (id) VALUES (1)
CREATE TABLE {new:dg} (id INT, x STRING DEFAULT uuid()) USING {f} TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported')
CREATE TABLE {new:dg} (id INT, x CHAR(3) DEFAULT 'toolong') USING {f} TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported')
CREATE TABLE {new:dh} (id INT, v VARCHAR(3) DEFAULT 'abc   ', c CHAR(3) DEFAULT 'a', s STRUCT<c: VARCHAR(3)> DEFAULT named_struct('c', 'abc ')) USING {f} TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported')
INSERT INTO {new:dh} (id) VALUES (1)
INSERT INTO {new:dh} VALUES (2, DEFAULT, 'a', NULL)
INSERT INTO {new:dh} (id, v, s) VALUES (3, 'abc', named_struct('c', 'abc'))
MERGE INTO {new:dh} t USING (SELECT 4 AS id) s ON t.id = s.id WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id)
UPDATE {new:dh} SET v = DEFAULT
ALTER TABLE {new:dh} ALTER COLUMN v SET DEFAULT 'q       '
INSERT INTO {new:dh} (id, s) VALUES (5, NULL)
ALTER TABLE {new:dh} ALTER COLUMN v SET DEFAULT 'q  '
INSERT INTO {new:dh} (id, s) VALUES (6, NULL)
SELECT id, '[' || v || ']', '[' || c || ']', s FROM {new:dh} ORDER BY id

-- values
UPDATE {t} SET v = 1.5D WHERE id = 1
UPDATE {t} SET v = id / 3 WHERE id = 2
UPDATE {t} SET v = d, n = d WHERE id = 3
UPDATE {t} SET v = float(id) / 3 WHERE id = 4
UPDATE {t} SET v = ts - timestamp'2024-01-01' WHERE id = 5
UPDATE {t} SET v = array(1) WHERE id = 5
UPDATE {t} SET v = X'4142' WHERE id = 5
UPDATE {t} SET n = 1.9 WHERE id = 6
UPDATE {t} SET n = true WHERE id = 6
UPDATE {t} SET ts = 5 WHERE id = 6
UPDATE {t} SET d = '1e3' WHERE id = 6
UPDATE {t} SET p = '7' WHERE id = 7
UPDATE {t} SET st.b = 2.5D, st.a = '8' WHERE id = 8
INSERT INTO {t} (id, v) SELECT 70, id / 3 FROM {t} WHERE id = 10
INSERT INTO {t} (id, v) VALUES (71, 1.5D)
INSERT INTO {t} (id, v) VALUES (72, true), (73, DATE'2024-01-01')
INSERT INTO {t} (id, v) VALUES (74, X'4142')
INSERT INTO {t} (id, v) VALUES (75, array(1, 2))
INSERT INTO {t} (id, v) VALUES (76, named_struct('a', 1))
INSERT INTO {t} (id, n) VALUES (77, 1.9)
INSERT INTO {t} (id, n) VALUES (78, 1.9D), (79, 2.5F)
INSERT INTO {t} (id, n) VALUES (80, true)
INSERT INTO {t} (id, d) VALUES (81, 1.239D)
INSERT INTO {t} (id, n) VALUES (82, DEFAULT + 1)
INSERT INTO {t} (id, n) SELECT 83, DEFAULT FROM range(2)
INSERT INTO {t} (id, m) VALUES (84, map('a', 1, 'a', 2))
INSERT INTO {t} (id, p, v) VALUES (85, '', 'x')
INSERT OVERWRITE {t} PARTITION (p = NULL) (id) VALUES (86)
INSERT INTO {t} (id, p) (SELECT 87, 1)
INSERT INTO {t} (id, p) SELECT 88, 1 UNION ALL SELECT 89, 2
INSERT INTO {t} (id, p) VALUES (90, (SELECT max(p) FROM sql_source))
INSERT INTO {t} (id, ts) VALUES (91, current_timestamp() - current_timestamp())
INSERT INTO {t} VALUES (DEFAULT, DEFAULT, DEFAULT, DEFAULT, DEFAULT, DEFAULT, DEFAULT, DEFAULT, DEFAULT, DEFAULT)
INSERT INTO {t} DEFAULT VALUES
INSERT WITH SCHEMA EVOLUTION INTO {t} BY NAME SELECT 92 AS id, named_struct('a', 5, 'b', 'q', 'z', 1) AS st
INSERT WITH SCHEMA EVOLUTION INTO {t} BY NAME SELECT 93 AS id, array(named_struct('x', 1)) AS nested
INSERT WITH SCHEMA EVOLUTION INTO {t} (id, nope) VALUES (95, 1)
INSERT WITH SCHEMA EVOLUTION INTO {t} BY NAME SELECT 96 AS id, 'text' AS n
MERGE INTO {t} t USING (SELECT 1 AS id, 2.5D AS v) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = s.v
MERGE INTO {t} t USING (SELECT 100 AS id, 2.5D AS v) s ON t.id = s.id WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.id, s.v / 3)
MERGE WITH SCHEMA EVOLUTION INTO {t} t USING (SELECT 2 AS id, '6' AS n, 4.5D AS v) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET *
MERGE WITH SCHEMA EVOLUTION INTO {t} t USING (SELECT 2 AS id, 'text' AS n) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET *
MERGE WITH SCHEMA EVOLUTION INTO {t} t USING (SELECT 2 AS id, array(1) AS n) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET *
SELECT id, v, n, d, p, ts FROM {t} ORDER BY ALL

-- conditions
DELETE FROM {t} WHERE id IN (SELECT id + 1000 FROM sql_source)
DELETE FROM {t} AS t WHERE NOT EXISTS (SELECT 1 FROM range(1000) s WHERE s.id = t.id)
WITH c AS (SELECT 700 AS id) DELETE FROM {t} WHERE id IN (SELECT id FROM c)
WITH c AS (SELECT 800 AS id) UPDATE {t} SET v = 'cte' WHERE id IN (SELECT id FROM c)
UPDATE {t} SET v = (SELECT max(v) FROM sql_source) WHERE id = 5
UPDATE {t} SET n = (SELECT count(*) FROM {t}) WHERE id = 6
WITH c AS (SELECT 9 AS id, 'm' AS v), d AS (SELECT * FROM c) MERGE INTO {t} t USING d s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = s.v
MERGE INTO {t} t USING sql_source s ON t.id = s.id WHEN MATCHED AND EXISTS (SELECT 1) THEN DELETE
MERGE INTO {t} t USING sql_source s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = (SELECT 'x')
MERGE INTO {t} t USING sql_source s ON t.id = s.id WHEN NOT MATCHED AND s.p = 0 THEN INSERT (id, v) VALUES (s.id, (SELECT 'x'))
MERGE INTO {t} t USING sql_source AS s ON t.id = s.id AND s.p = 1 WHEN MATCHED THEN UPDATE SET t.st.a = s.n, m = map('x', 1)
MERGE INTO {t} t USING sql_source AS s ON t.id = s.id WHEN NOT MATCHED AND s.p = 2 THEN INSERT (id, st.a) VALUES (s.id, 1)
MERGE INTO {t} t USING sql_source AS s ON t.id = s.id WHEN NOT MATCHED AND s.p = 2 THEN INSERT (t.id, t.v) VALUES (s.id, 'q')
MERGE INTO {t} t USING sql_source AS s ON t.id = s.id WHEN NOT MATCHED BY SOURCE AND t.id < 3 THEN UPDATE SET n = t.n + 1
MERGE INTO {t} t USING sql_source AS s ON t.id = s.id WHEN NOT MATCHED BY SOURCE THEN UPDATE SET *
MERGE INTO {t} t USING sql_source AS s ON t.id = s.id WHEN MATCHED THEN UPDATE SET * EXCEPT (v)
MERGE INTO {t} t USING (SELECT id, v FROM sql_source) s ON t.id = s.id WHEN NOT MATCHED THEN INSERT *
MERGE INTO {t} t USING (SELECT * FROM sql_source UNION ALL SELECT * FROM sql_source) s ON t.id = s.id WHEN MATCHED AND t.p = 1 THEN DELETE
MERGE INTO {t} t USING (SELECT * FROM sql_source UNION ALL SELECT * FROM sql_source) s ON t.id = s.id WHEN MATCHED THEN DELETE
MERGE INTO {t} t USING (SELECT 30 AS id, 5000000000 AS n) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET n = s.n
MERGE INTO {t} t USING (SELECT 30 AS id, 'abc' AS n) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET n = s.n
MERGE WITH SCHEMA EVOLUTION INTO {t} t USING (SELECT 30 AS id, named_struct('a', 1, 'new', 2) AS st) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET *
MERGE WITH SCHEMA EVOLUTION INTO {t} t USING (SELECT 31 AS id, array(1L) AS arr, 1 AS added) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET arr = s.arr
MERGE WITH SCHEMA EVOLUTION INTO {t} t USING (SELECT 31 AS id, 1 AS added, 2 AS added2) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET added = s.added
MERGE INTO {t} AS t (a, b) USING sql_source s ON t.id = s.id WHEN MATCHED THEN DELETE
UPDATE {t} t SET t.v = t.v || '!', t.n = t.n WHERE t.id % 7 = 0
UPDATE {t} SET id = id, id = 5
UPDATE {t} SET m['k'] = 1
UPDATE {t} SET arr[0] = 1
UPDATE {t} SET * = 1
UPDATE {t} SET st.nope = 1
UPDATE {t} SET v.x = 1
UPDATE {t} SET v = v WHERE rand() > 2
DELETE FROM {t} t, sql_source s WHERE t.id = s.id
DELETE FROM {t} USING sql_source WHERE id = 1
DELETE FROM {t} ORDER BY id
DELETE FROM {t} WHERE row_number() OVER (ORDER BY id) = 1
DELETE FROM {t} WHERE explode(arr) = 1
DELETE FROM {t} WHERE id = 40; 
DELETE FROM {t} WHERE ts = '2024-02-10'
DELETE FROM {t} WHERE p = '1' AND d > '10'
DELETE FROM {t} WHERE _metadata.file_name = 'nope'
UPDATE {t} SET v = 'm' WHERE _metadata.file_size < 0
UPDATE {t} SET v = _metadata.file_name WHERE id = 300000
DELETE FROM {t} WHERE _metadata IS NULL
DELETE FROM {t} WHERE _metadata.nope = 1
MERGE INTO {t} t USING sql_source s ON t.id = s.id AND t._metadata.file_name = 'x' WHEN MATCHED THEN DELETE
MERGE INTO {t} t USING {t} s ON t.id = s.id AND s._metadata.file_name = 'x' WHEN MATCHED THEN DELETE
MERGE INTO {t} t USING sql_source s ON t.id = s.id WHEN MATCHED AND t.id = 52 THEN UPDATE SET v = left(t._metadata.file_name, 4)
MERGE INTO {t} t USING sql_source s ON t.id = s.id WHEN NOT MATCHED BY SOURCE AND t._metadata.file_name = 'x' THEN DELETE
MERGE INTO {t} t USING (SELECT id, _metadata.file_name AS f FROM {t}) s ON t.id = s.id WHEN MATCHED AND s.f = 'x' THEN DELETE

-- clones
CREATE TABLE {new:ca} SHALLOW CLONE {t} TBLPROPERTIES ('delta.columnMapping.mode' = 'none')
CREATE TABLE {new:ca} SHALLOW CLONE {t} TBLPROPERTIES ('delta.enableDeletionVectors' = 'false', 'own' = 'z')
INSERT INTO {new:ca} (id) VALUES (900)
DELETE FROM {new:ca} WHERE id < 3
CREATE TABLE {new:cb} SHALLOW CLONE {new:ca} VERSION AS OF 0
RESTORE {new:ca} TO VERSION AS OF 0
CREATE OR REPLACE TABLE {new:cc} (id INT NOT NULL, c CHAR(2), d DATE GENERATED ALWAYS AS (CAST(ts AS DATE)), ts TIMESTAMP) USING {f} PARTITIONED BY (d) TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')
CREATE OR REPLACE TABLE {new:cc} USING {f} PARTITIONED BY (id) TBLPROPERTIES ('a.b' = 'c') AS SELECT 1 AS id, 'x' AS v
CREATE OR REPLACE TABLE {new:cc} USING {f} CLUSTER BY (id, v) COMMENT 'cl' AS SELECT 1 AS id, 'x' AS v
CREATE TABLE {new:cd} (id INT) USING {f} CLUSTERED BY (id) INTO 4 BUCKETS
CREATE TABLE {new:cd} (id INT, st STRUCT<a: INT>) USING {f} CLUSTER BY (st.a)
CREATE TABLE {new:ce} (id INT, a ARRAY<INT>) USING {f} CLUSTER BY (a)
CREATE TABLE {new:cf} (a INT, b INT, c INT, d INT, e INT) USING {f} CLUSTER BY (a, b, c, d, e)
CREATE TABLE {new:cg} (id INT, st STRUCT<a: INT>) USING {f} TBLPROPERTIES ('delta.enableTypeWidening' = 'true')
INSERT INTO {new:cg} VALUES (1, named_struct('a', 1))
ALTER TABLE {new:cg} ALTER COLUMN st.a TYPE BIGINT
ALTER TABLE {new:cg} ALTER COLUMN id TYPE BIGINT
ALTER TABLE {new:cg} DROP FEATURE typeWidening

-- corners
UPDATE {t} SET n = INTERVAL 1 DAY WHERE id = 1
UPDATE {t} SET d = INTERVAL '2' HOUR WHERE id = 2
UPDATE {t} SET v = INTERVAL '1' MONTH WHERE id = 1
UPDATE {t} SET ts = INTERVAL 1 DAY
UPDATE {t} SET st = INTERVAL 1 DAY
UPDATE {t} SET arr = INTERVAL 1 DAY
UPDATE {t} SET n = make_interval(1)
UPDATE {t} SET st.a = INTERVAL '3' DAY WHERE id = 3
UPDATE {t} SET id = INTERVAL '1' YEAR WHERE id = 4
UPDATE {t} SET n = INTERVAL '1' HOUR WHERE id = 5
INSERT INTO {t} (id, n, v) VALUES (901, INTERVAL 1 DAY, INTERVAL 1 DAY)
MERGE INTO {t} t USING sql_source s ON t.id = s.id WHEN MATCHED THEN UPDATE SET n = INTERVAL 1 DAY
MERGE INTO {t} t USING sql_source s ON t.id = s.id WHEN MATCHED THEN UPDATE SET ts = INTERVAL 1 DAY
UPDATE {t} SET n = 10/0 WHERE id = 3
UPDATE {t} SET n = 10/0 WHERE false
UPDATE {t} SET n = 10 / (id - id) WHERE id = 6
UPDATE {t} SET n = 10 / (id - id) WHERE id = 9999
UPDATE {t} SET n = 10 DIV 0 WHERE id = 3
UPDATE {t} SET n = 10 % 0 WHERE id = 3
UPDATE {t} SET v = 10/0 WHERE id = 3
UPDATE {t} SET n = CAST('x' AS INT) WHERE id = 3
UPDATE {t} SET arr = array(element_at(array(1), 5)) WHERE id = 3
DELETE FROM {t} WHERE 10/0 = 1
INSERT INTO {t} (id, n) VALUES (1, 10/0)
MERGE INTO {t} t USING sql_source s ON t.id = s.id WHEN MATCHED THEN UPDATE SET n = 10/0
ALTER TABLE {t} ALTER COLUMN v SET DEFAULT 'dv'
UPDATE {t} SET n = DEFAULT, v = DEFAULT WHERE id = 7
MERGE INTO {t} t USING sql_source s ON t.id = s.id WHEN MATCHED AND s.id = -1 THEN UPDATE SET n = DEFAULT, v = DEFAULT
MERGE INTO {t} t USING sql_source s ON t.id = s.id WHEN NOT MATCHED AND s.id = -1 THEN INSERT (id, n, v) VALUES (s.id, DEFAULT, DEFAULT)
MERGE INTO {t} t USING sql_source s ON t.id = s.id WHEN MATCHED THEN UPDATE SET n = DEFAULT + 1
ALTER TABLE {t} ALTER COLUMN st.a SET DEFAULT 5
UPDATE {t} SET st.a = DEFAULT WHERE id = 8
INSERT INTO {t} (id, st) VALUES (902, named_struct('a', 1, 'b', 'x'))
ALTER TABLE {t} ALTER COLUMN st.a SET DEFAULT 'x'
ALTER TABLE {t} ALTER COLUMN st.nope SET DEFAULT 5
ALTER TABLE {t} ALTER COLUMN st.a DROP DEFAULT
ALTER TABLE {t} ALTER COLUMN arr.element SET DEFAULT 5
UPDATE {t} SET v = 1 WHERE nope = 1
DELETE FROM {t} WHERE nope.x = 1
UPDATE {t} SET v = st.nope
UPDATE {t} SET st.nope = 1
CREATE TABLE {new:nc} USING {f}
SELECT * FROM {new:nc}
SELECT count(*) FROM {new:nc}
SELECT a FROM {new:nc}
UPDATE {new:nc} SET a = 1 WHERE b = 2
MERGE INTO {new:nc} t USING sql_source s ON t.id = s.id WHEN NOT MATCHED THEN INSERT *
INSERT INTO {new:nc} VALUES (1)
MERGE WITH SCHEMA EVOLUTION INTO {new:nc} t USING sql_source s ON 1 = 0 WHEN NOT MATCHED THEN INSERT *
SELECT count(*) FROM {new:nc}
