-- columns of the table
SELECT column_name, column_type, is_nullable = 'YES' AS nullable, coalesce(collation_name, '') AS collated,
       extra LIKE '%auto_increment%' AS is_generated, 1 AS cached
FROM information_schema.columns WHERE table_schema = 'Sales 2013' AND table_name = 'Order `"]'' Lines' ORDER BY ordinal_position;

-- columns of a table without a schema
SELECT column_name, column_type, is_nullable = 'YES' AS nullable, coalesce(collation_name, '') AS collated,
       extra LIKE '%auto_increment%' AS is_generated, 1 AS cached
FROM information_schema.columns WHERE table_schema = database() AND table_name = 'Order `"]'' Lines' ORDER BY ordinal_position;

-- unique indexes
SELECT index_name, index_name = 'PRIMARY' AS is_primary, column_name, 0 AS is_deferred
FROM information_schema.statistics s WHERE table_schema = 'Sales 2013' AND table_name = 'Order `"]'' Lines' AND non_unique = 0
  AND NOT EXISTS (SELECT 1 FROM information_schema.statistics p WHERE p.table_schema = s.table_schema
                  AND p.table_name = s.table_name AND p.index_name = s.index_name
                  AND (p.sub_part IS NOT NULL OR p.column_name IS NULL))
ORDER BY index_name, seq_in_index;

-- now
SELECT CAST(utc_timestamp(6) AS CHAR) AS now_utc;

-- identity
SELECT concat(@@server_uid, '/', database()) AS server;

-- who may still write, 0
SELECT concat('statement ', id, ' ', query_id) AS statement, CAST(id AS CHAR) AS owner, 0 AS stage,
       CAST(utc_timestamp(6) - INTERVAL ceil(time_ms * 1000) + 1000 MICROSECOND AS CHAR) AS since,
       concat('thread ', id, ', ', user) AS who
FROM information_schema.processlist WHERE id <> connection_id() AND command NOT IN ('Sleep', 'Daemon', 'Binlog Dump', 'Binlog Dump GTID') AND command NOT LIKE 'Slave%' AND (command <> 'Connect' OR info IS NOT NULL);

-- who may still write, 1
SELECT CASE WHEN (trx_id > 0 AND trx_id < 281474976710656) THEN concat('transaction ', trx_id)
            ELSE concat('reading ', trx_mysql_thread_id, ' ', trx_started) END AS id,
       CAST(nullif(trx_mysql_thread_id, 0) AS CHAR) AS owner,
       CASE WHEN (trx_id > 0 AND trx_id < 281474976710656) THEN 2 ELSE 1 END AS stage, CAST(CASE WHEN convert_tz(convert_tz(trx_started, 'SYSTEM', '+00:00') - INTERVAL 1 HOUR, '+00:00', 'SYSTEM') = trx_started THEN convert_tz(trx_started, 'SYSTEM', '+00:00') - INTERVAL 1 HOUR ELSE convert_tz(trx_started, 'SYSTEM', '+00:00') END AS CHAR) AS since,
       CASE WHEN trx_mysql_thread_id = 0 THEN concat('prepared transaction ', trx_id)
            ELSE concat('thread ', trx_mysql_thread_id) END AS who
FROM information_schema.innodb_trx WHERE trx_mysql_thread_id <> connection_id();

-- witness, its owner
SELECT CAST(connection_id() AS CHAR) AS owner;

-- what hides who writes
SELECT 'this server is a replica: read from its primary' AS why FROM information_schema.processlist
WHERE command LIKE 'Slave%' OR (user = 'system user' AND command IN ('Connect', 'Query'))
UNION ALL
SELECT concat(table_name, ' is a table of another server, whose transactions are open there: read it there')
FROM information_schema.tables WHERE table_schema = 'Sales 2013' AND table_name = 'Order `"]'' Lines' AND engine IN ('FEDERATED', 'CONNECT', 'SPIDER')
UNION ALL
SELECT 'this server is one of a Galera cluster, whose other servers write as well'
FROM information_schema.global_status
WHERE variable_name = 'wsrep_cluster_size' AND CAST(variable_value AS INT) > 1;

-- key: integer, 6 digits
SELECT CAST(`k 0` + 0 AS CHAR) AS bookmark_key_0 FROM `Sales 2013`.`Order ``"]' Lines` WHERE `k 0` > -42 LIMIT 10;

-- key: decimal, 6 digits
SELECT CAST(`k 1` AS CHAR) AS bookmark_key_0 FROM `Sales 2013`.`Order ``"]' Lines` WHERE `k 1` > CAST('1234567890.0000000001' AS DECIMAL(65, 10)) LIMIT 10;

-- key: date, 6 digits
SELECT CAST(`k 2` AS CHAR) AS bookmark_key_0 FROM `Sales 2013`.`Order ``"]' Lines` WHERE `k 2` > '2013-01-31' LIMIT 10;

-- key: date, with no end
SELECT count(*) AS counted_rows FROM (SELECT 1 AS one FROM `Sales 2013`.`Order ``"]' Lines` WHERE `k 2` = '0000-00-00' OR `k 2` > '0000-00-00' LIMIT 5) counted;

-- key: local_time, 3 digits
SELECT CAST(`k 3` AS CHAR) AS bookmark_key_0 FROM `Sales 2013`.`Order ``"]' Lines` WHERE `k 3` > '2013-01-31 23:59:58.123456' LIMIT 10;

-- key: local_time, with no end
SELECT count(*) AS counted_rows FROM (SELECT 1 AS one FROM `Sales 2013`.`Order ``"]' Lines` WHERE `k 3` = '0000-00-00 00:00:00' OR `k 3` > '0000-00-00 00:00:00' LIMIT 5) counted;

-- key: time, 6 digits
SELECT CAST(`k 4` AS CHAR) AS bookmark_key_0 FROM `Sales 2013`.`Order ``"]' Lines` WHERE `k 4` > '2013-01-31 23:59:58.123456' LIMIT 10;

-- key: time, with no end
SELECT count(*) AS counted_rows FROM (SELECT 1 AS one FROM `Sales 2013`.`Order ``"]' Lines` WHERE `k 4` = '0000-00-00 00:00:00' OR `k 4` > '0000-00-00 00:00:00' LIMIT 5) counted;

-- key: text, 6 digits
SELECT CAST(`k 5` AS CHAR) AS bookmark_key_0 FROM `Sales 2013`.`Order ``"]' Lines` WHERE `k 5` > _utf8mb4 0x697427732061205c20616e64205c0a6d6f7265 LIMIT 10;

-- the last row
SELECT CAST(`k 4` AS CHAR) AS bookmark_key_0, CAST(`k 0` + 0 AS CHAR) AS bookmark_key_1 FROM `Sales 2013`.`Order ``"]' Lines` WHERE 1 = 1 ORDER BY `k 4` DESC, `k 0` DESC, `k 2` DESC LIMIT 1;

-- a window, from its fourth row
SELECT CAST(`k 4` AS CHAR) AS bookmark_key_0, CAST(`k 0` + 0 AS CHAR) AS bookmark_key_1 FROM `Sales 2013`.`Order ``"]' Lines` WHERE ((`k 0` IS NOT NULL AND ((`k 4` >= '2013-01-31 23:59:58.123456' AND (`k 4` > '2013-01-31 23:59:58.123456' OR `k 0` >= 1)) AND ((`k 4` >= '2013-01-31 23:59:58.123456' AND (`k 4` > '2013-01-31 23:59:58.123456' OR `k 0` > 1)) OR (`k 4` = '2013-01-31 23:59:58.123456' AND `k 0` = 1 AND NOT ((`k 0` = 1 AND `k 2` = '2013-01-31'))))) AND ((`k 4` <= '2013-01-31 23:59:58.123456' AND (`k 4` < '2013-01-31 23:59:58.123456' OR `k 0` < 2)) OR (`k 4` = '2013-01-31 23:59:58.123456' AND `k 0` = 2 AND ((`k 0` = 2 AND `k 2` = '2013-01-31'))))) OR (`k 0` IS NULL OR `k 4` = '0000-00-00 00:00:00')) ORDER BY `k 4` ASC, `k 0` ASC, `k 2` ASC LIMIT 1 OFFSET 3;

-- rows without a place
SELECT count(*) AS counted_rows FROM (SELECT 1 AS one FROM `Sales 2013`.`Order ``"]' Lines` WHERE `k 0` IS NULL OR `k 4` = '0000-00-00 00:00:00' LIMIT 101) counted;

-- a window that goes down
SELECT `k 0` FROM `Sales 2013`.`Order ``"]' Lines` WHERE `k 0` < 7 AND `k 0` >= 5 LIMIT 5;

-- a part by its hash
SELECT count(*) AS counted_rows FROM (SELECT 1 AS one FROM `Sales 2013`.`Order ``"]' Lines` WHERE ((CRC32(CAST(CAST(`k 4` AS CHAR) AS CHAR)) % 3) = 0 OR (CRC32(CAST(CAST(`k 4` AS CHAR) AS CHAR)) % 3) IS NULL) LIMIT 5) counted;

-- a part by its hash
SELECT count(*) AS counted_rows FROM (SELECT 1 AS one FROM `Sales 2013`.`Order ``"]' Lines` WHERE (CRC32(CAST(CAST(`k 4` AS CHAR) AS CHAR)) % 3) = 1 LIMIT 5) counted;

-- a part by its hash
SELECT count(*) AS counted_rows FROM (SELECT 1 AS one FROM `Sales 2013`.`Order ``"]' Lines` WHERE (CRC32(CAST(CAST(`k 4` AS CHAR) AS CHAR)) % 3) = 2 LIMIT 5) counted;

-- make a table of the types of a query
CREATE OR REPLACE TEMPORARY TABLE _bookmarks_types_of_a_query AS SELECT `one` FROM (SELECT 1 AS one -- more
) q LIMIT 0;

-- read the types
SHOW FULL COLUMNS FROM _bookmarks_types_of_a_query;

-- drop the table
DROP TEMPORARY TABLE _bookmarks_types_of_a_query;

-- token table
CREATE TABLE IF NOT EXISTS `stage`.`_bookmarks_tokens` (output_id varchar(32) NOT NULL PRIMARY KEY, job_id varchar(16) NOT NULL, output_name text NOT NULL, fence bigint NOT NULL, published_rows bigint NOT NULL) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

-- token row
INSERT INTO `stage`.`_bookmarks_tokens` (output_id, job_id, output_name, fence, published_rows) VALUES ('08f20d4142c75a55_e50fc7992e88', '08f20d4142c75a55', 'it''s orders', 0, 0) ON DUPLICATE KEY UPDATE job_id = VALUES(job_id);

-- take a token
UPDATE `stage`.`_bookmarks_tokens` SET fence = 15, published_rows = 0 WHERE output_id = '08f20d4142c75a55_e50fc7992e88' AND fence < 15;

-- note how many rows were published
UPDATE `stage`.`_bookmarks_tokens` SET published_rows = 42 WHERE output_id = '08f20d4142c75a55_e50fc7992e88';

-- read a token
SELECT fence, published_rows FROM `stage`.`_bookmarks_tokens` WHERE output_id = '08f20d4142c75a55_e50fc7992e88';

-- burn tokens
UPDATE `stage`.`_bookmarks_tokens` SET fence = 15, published_rows = 0 WHERE job_id = '08f20d4142c75a55' AND fence < 15;

-- stage
CREATE TABLE `stage`.`_bm_stage` ENGINE=InnoDB AS SELECT `id`, `Na me` FROM (SELECT 1 AS _bm_one) one LEFT JOIN `Sales 2013`.`Order ``"]' Lines` ON 1 = 0 WHERE 1 = 0;

-- seal the stage
ALTER TABLE `stage`.`_bm_stage_load` RENAME TO `stage`.`_bm_stage`;

-- drop a stage
DROP TABLE IF EXISTS `stage`.`_bm_stage`;

-- make the target
CREATE TABLE IF NOT EXISTS `Sales 2013`.`Order ``"]' Lines` (PRIMARY KEY (`id`)) ENGINE=InnoDB AS SELECT `id`, `Na me` FROM `stage`.`_bm_stage` WHERE 1 = 0;

-- empty the target
DELETE FROM `Sales 2013`.`Order ``"]' Lines`;

-- insert
INSERT INTO `Sales 2013`.`Order ``"]' Lines` (`id`, `Na me`) SELECT `id`, `Na me` FROM `stage`.`_bm_stage`;

-- upsert
UPDATE `Sales 2013`.`Order ``"]' Lines` old JOIN (SELECT `id`, `Na me` FROM (SELECT `id`, `Na me`, ROW_NUMBER() OVER (PARTITION BY `id` ORDER BY `Na me` DESC) AS _bm_rank FROM `stage`.`_bm_stage`) ranked WHERE _bm_rank = 1 AND 1 = 1) new ON old.`id` = new.`id` SET old.`Na me` = new.`Na me`, old.`id` = new.`id`;

-- upsert
INSERT INTO `Sales 2013`.`Order ``"]' Lines` (`id`, `Na me`) SELECT new.`id`, new.`Na me` FROM (SELECT `id`, `Na me` FROM (SELECT `id`, `Na me`, ROW_NUMBER() OVER (PARTITION BY `id` ORDER BY `Na me` DESC) AS _bm_rank FROM `stage`.`_bm_stage`) ranked WHERE _bm_rank = 1 AND 1 = 1) new WHERE NOT EXISTS (SELECT 1 FROM `Sales 2013`.`Order ``"]' Lines` old WHERE old.`id` = new.`id`);

-- upsert with a delete set
DELETE old FROM `Sales 2013`.`Order ``"]' Lines` old JOIN (SELECT `id` FROM (SELECT `id`, `_bm_deleted`, ROW_NUMBER() OVER (PARTITION BY `id` ORDER BY `Na me` DESC, `_bm_deleted`) AS _bm_rank FROM `stage`.`_bm_stage`) ranked WHERE _bm_rank = 1 AND `_bm_deleted` = 1) gone ON old.`id` = gone.`id`;

-- upsert with a delete set
UPDATE `Sales 2013`.`Order ``"]' Lines` old JOIN (SELECT `id`, `Na me` FROM (SELECT `id`, `Na me`, `_bm_deleted`, ROW_NUMBER() OVER (PARTITION BY `id` ORDER BY `Na me` DESC, `_bm_deleted`) AS _bm_rank FROM `stage`.`_bm_stage`) ranked WHERE _bm_rank = 1 AND `_bm_deleted` = 0) new ON old.`id` = new.`id` SET old.`Na me` = new.`Na me`, old.`id` = new.`id`;

-- upsert with a delete set
INSERT INTO `Sales 2013`.`Order ``"]' Lines` (`id`, `Na me`) SELECT new.`id`, new.`Na me` FROM (SELECT `id`, `Na me` FROM (SELECT `id`, `Na me`, `_bm_deleted`, ROW_NUMBER() OVER (PARTITION BY `id` ORDER BY `Na me` DESC, `_bm_deleted`) AS _bm_rank FROM `stage`.`_bm_stage`) ranked WHERE _bm_rank = 1 AND `_bm_deleted` = 0) new WHERE NOT EXISTS (SELECT 1 FROM `Sales 2013`.`Order ``"]' Lines` old WHERE old.`id` = new.`id`);

-- keys that are NULL
SELECT count(*) FROM `stage`.`_bm_stage` WHERE `id` IS NULL;

-- keys that come twice
SELECT count(*) FROM (SELECT 1 AS one FROM `stage`.`_bm_stage` GROUP BY `id` HAVING count(*) > 1) repeated;

-- stage tables of a job
SELECT table_name FROM information_schema.tables WHERE table_schema = 'stage' AND left(table_name, 4) = '_bm_' ORDER BY table_name;
