-- columns of the table
SELECT a.attname, format_type(a.atttypid, a.atttypmod) AS declared, NOT a.attnotnull AS nullable,
       CASE WHEN a.attcollation = 0 THEN '' WHEN c.collname <> 'default' THEN c.collname
            WHEN to_jsonb(d) ->> 'datlocprovider' = 'i' THEN 'icu' ELSE d.datcollate END AS collated,
       a.attidentity <> ''
       OR coalesce(pg_get_expr(e.adbin, e.adrelid) LIKE 'nextval(%', false) AS is_generated,
       coalesce((SELECT s.seqcache FROM pg_sequence s
                 JOIN pg_depend o ON o.objid = s.seqrelid AND o.classid = 'pg_class'::regclass
                 WHERE o.refobjid = a.attrelid AND o.refobjsubid = a.attnum AND o.deptype IN ('a', 'i')
                 LIMIT 1), 1) AS cached
FROM pg_attribute a
JOIN pg_database d ON d.datname = current_database()
LEFT JOIN pg_collation c ON c.oid = a.attcollation
LEFT JOIN pg_attrdef e ON e.adrelid = a.attrelid AND e.adnum = a.attnum
WHERE a.attrelid = to_regclass('"Sales 2013"."Order `""]'' Lines"') AND a.attnum > 0 AND NOT a.attisdropped
ORDER BY a.attnum;

-- columns of a table without a schema
SELECT a.attname, format_type(a.atttypid, a.atttypmod) AS declared, NOT a.attnotnull AS nullable,
       CASE WHEN a.attcollation = 0 THEN '' WHEN c.collname <> 'default' THEN c.collname
            WHEN to_jsonb(d) ->> 'datlocprovider' = 'i' THEN 'icu' ELSE d.datcollate END AS collated,
       a.attidentity <> ''
       OR coalesce(pg_get_expr(e.adbin, e.adrelid) LIKE 'nextval(%', false) AS is_generated,
       coalesce((SELECT s.seqcache FROM pg_sequence s
                 JOIN pg_depend o ON o.objid = s.seqrelid AND o.classid = 'pg_class'::regclass
                 WHERE o.refobjid = a.attrelid AND o.refobjsubid = a.attnum AND o.deptype IN ('a', 'i')
                 LIMIT 1), 1) AS cached
FROM pg_attribute a
JOIN pg_database d ON d.datname = current_database()
LEFT JOIN pg_collation c ON c.oid = a.attcollation
LEFT JOIN pg_attrdef e ON e.adrelid = a.attrelid AND e.adnum = a.attnum
WHERE a.attrelid = to_regclass('"Order `""]'' Lines"') AND a.attnum > 0 AND NOT a.attisdropped
ORDER BY a.attnum;

-- unique indexes
SELECT CAST(i.indexrelid AS bigint) AS id, i.indisprimary, a.attname, NOT i.indimmediate AS is_deferred
FROM pg_index i
CROSS JOIN LATERAL unnest(i.indkey) WITH ORDINALITY k(attnum, place)
JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attnum
WHERE i.indrelid = to_regclass('"Sales 2013"."Order `""]'' Lines"') AND i.indisunique AND i.indisvalid
  AND i.indpred IS NULL AND i.indexprs IS NULL AND k.place <= i.indnkeyatts
ORDER BY i.indexrelid, k.place;

-- types of a query
SELECT CAST(pg_typeof(q."one") AS text) AS type_0 FROM (SELECT 1) one LEFT JOIN (SELECT "one" FROM (SELECT 1 AS one
) q LIMIT 1) q ON true;

-- now
SELECT CAST(clock_timestamp() AT TIME ZONE 'UTC' AS text) AS now_utc;

-- identity
SELECT CAST(system_identifier AS text) || '/' || (SELECT CAST(oid AS text) FROM pg_database WHERE datname = current_database()) AS server FROM pg_control_system();

-- who may still write, 0
SELECT CAST(l.virtualtransaction AS text) AS id, CAST(l.pid AS text) AS owner, 0 AS stage,
       CAST(a.xact_start AT TIME ZONE 'UTC' AS text) AS since,
       concat_ws(', ', 'pid ' || l.pid, nullif(a.application_name, ''), a.usename) AS who
FROM pg_locks l LEFT JOIN pg_stat_activity a ON a.pid = l.pid
WHERE l.locktype = 'virtualxid' AND l.mode = 'ExclusiveLock' AND l.granted AND l.pid <> pg_backend_pid()
  AND coalesce(a.datname = current_database(), true) AND (a.pid IS NULL OR a.usesysid IS NOT NULL)
  AND NOT EXISTS (SELECT 1 FROM pg_stat_progress_vacuum v WHERE v.pid = l.pid);

-- who may still write, 1
SELECT 'prepared ' || transaction AS id, CAST(NULL AS text) AS owner, 1 AS stage,
       CAST(NULL AS text) AS since, concat_ws(', ', 'prepared transaction ' || gid, owner) AS who
FROM pg_prepared_xacts WHERE database = current_database();

-- what hides who writes
WITH RECURSIVE part(oid) AS (
    SELECT CAST(to_regclass('"Sales 2013"."Order `""]'' Lines"') AS oid)
    UNION
    SELECT edge.part FROM part JOIN (
        SELECT w.ev_class AS whole, d.refobjid AS part FROM pg_rewrite w
        JOIN pg_depend d ON d.classid = 'pg_rewrite'::regclass AND d.objid = w.oid
                        AND d.refclassid = 'pg_class'::regclass
        UNION ALL
        SELECT inhparent, inhrelid FROM pg_inherits
    ) edge ON edge.whole = part.oid
)
SELECT 'this server is a standby: read from its primary' AS why WHERE pg_is_in_recovery()
UNION ALL
SELECT CAST(CAST(c.oid AS regclass) AS text) || CASE c.relkind
       WHEN 'm' THEN ' is a materialised view, which gets late rows when it is refreshed: read its tables'
       WHEN 'f' THEN ' is a foreign table, whose transactions are open elsewhere: read it there'
       ELSE ' gets its rows by a subscription, whose transactions are open elsewhere: read it there' END
FROM part JOIN pg_class c ON c.oid = part.oid
WHERE c.relkind IN ('m', 'f') OR EXISTS (SELECT 1 FROM pg_subscription_rel s WHERE s.srrelid = c.oid);

-- key: integer, 6 digits
SELECT CAST("k 0" AS text) AS bookmark_key_0 FROM "Sales 2013"."Order `""]' Lines" WHERE "k 0" > -42 LIMIT 10;

-- key: decimal, 6 digits
SELECT CAST("k 1" AS text) AS bookmark_key_0 FROM "Sales 2013"."Order `""]' Lines" WHERE "k 1" > CAST('1234567890.0000000001' AS numeric) LIMIT 10;

-- key: decimal, with no end
SELECT count(*) AS counted_rows FROM (SELECT 1 AS one FROM "Sales 2013"."Order `""]' Lines" WHERE "k 1" >= CAST('1e131071' AS numeric) OR "k 1" <= -CAST('1e131071' AS numeric) OR "k 1" < CAST('1e131071' AS numeric) AND "k 1" > -CAST('1e131071' AS numeric) LIMIT 5) counted;

-- key: date, 6 digits
SELECT CAST("k 2" AS text) AS bookmark_key_0 FROM "Sales 2013"."Order `""]' Lines" WHERE "k 2" > CAST('2013-01-31' AS date) LIMIT 10;

-- key: date, with no end
SELECT count(*) AS counted_rows FROM (SELECT 1 AS one FROM "Sales 2013"."Order `""]' Lines" WHERE "k 2" IN (CAST('infinity' AS date), CAST('-infinity' AS date)) OR "k 2" < CAST('infinity' AS date) AND "k 2" > CAST('-infinity' AS date) LIMIT 5) counted;

-- key: local_time, 3 digits
SELECT CAST("k 3" AS text) AS bookmark_key_0 FROM "Sales 2013"."Order `""]' Lines" WHERE "k 3" > CAST('2013-01-31 23:59:58.123456' AS timestamp) LIMIT 10;

-- key: local_time, with no end
SELECT count(*) AS counted_rows FROM (SELECT 1 AS one FROM "Sales 2013"."Order `""]' Lines" WHERE "k 3" IN (CAST('infinity' AS timestamp), CAST('-infinity' AS timestamp)) OR "k 3" < CAST('infinity' AS timestamp) AND "k 3" > CAST('-infinity' AS timestamp) LIMIT 5) counted;

-- key: time, 6 digits
SELECT CAST("k 4" AS text) AS bookmark_key_0 FROM "Sales 2013"."Order `""]' Lines" WHERE "k 4" > CAST('2013-01-31 23:59:58.123456+00:00' AS timestamptz) LIMIT 10;

-- key: time, with no end
SELECT count(*) AS counted_rows FROM (SELECT 1 AS one FROM "Sales 2013"."Order `""]' Lines" WHERE "k 4" IN (CAST('infinity' AS timestamptz), CAST('-infinity' AS timestamptz)) OR "k 4" < CAST('infinity' AS timestamptz) AND "k 4" > CAST('-infinity' AS timestamptz) LIMIT 5) counted;

-- key: text, 6 digits
SELECT CAST("k 5" AS text) AS bookmark_key_0 FROM "Sales 2013"."Order `""]' Lines" WHERE "k 5" COLLATE "C" > CAST( E'it''s a \\ and \\
more' AS text) LIMIT 10;

-- the last row
SELECT CAST("k 4" AS text) AS bookmark_key_0, CAST("k 0" AS text) AS bookmark_key_1 FROM "Sales 2013"."Order `""]' Lines" WHERE 1 = 1 ORDER BY "k 4" DESC, "k 0" DESC, "k 2" DESC LIMIT 1;

-- a window, from its fourth row
SELECT CAST("k 4" AS text) AS bookmark_key_0, CAST("k 0" AS text) AS bookmark_key_1 FROM "Sales 2013"."Order `""]' Lines" WHERE (("k 0" IS NOT NULL AND (("k 4", "k 0") >= (CAST('2013-01-31 23:59:58.123456+00:00' AS timestamptz), 1) AND (("k 4", "k 0") > (CAST('2013-01-31 23:59:58.123456+00:00' AS timestamptz), 1) OR ("k 4" = CAST('2013-01-31 23:59:58.123456+00:00' AS timestamptz) AND "k 0" = 1 AND NOT (("k 0" = 1 AND "k 2" = CAST('2013-01-31' AS date)))))) AND (("k 4", "k 0") < (CAST('2013-01-31 23:59:58.123456+00:00' AS timestamptz), 2) OR ("k 4" = CAST('2013-01-31 23:59:58.123456+00:00' AS timestamptz) AND "k 0" = 2 AND (("k 0" = 2 AND "k 2" = CAST('2013-01-31' AS date)))))) OR ("k 0" IS NULL OR "k 4" IN (CAST('infinity' AS timestamptz), CAST('-infinity' AS timestamptz)))) ORDER BY "k 4" ASC, "k 0" ASC, "k 2" ASC LIMIT 1 OFFSET 3;

-- rows without a place
SELECT count(*) AS counted_rows FROM (SELECT 1 AS one FROM "Sales 2013"."Order `""]' Lines" WHERE "k 0" IS NULL OR "k 4" IN (CAST('infinity' AS timestamptz), CAST('-infinity' AS timestamptz)) LIMIT 101) counted;

-- a window that goes down
SELECT "k 0" FROM "Sales 2013"."Order `""]' Lines" WHERE "k 0" < 7 AND "k 0" >= 5 LIMIT 5;

-- a part by its hash
SELECT count(*) AS counted_rows FROM (SELECT 1 AS one FROM "Sales 2013"."Order `""]' Lines" WHERE (((hashtext(CAST(CAST("k 4" AS text) AS text))::bigint & 2147483647) % 3) = 0 OR ((hashtext(CAST(CAST("k 4" AS text) AS text))::bigint & 2147483647) % 3) IS NULL) LIMIT 5) counted;

-- a part by its hash
SELECT count(*) AS counted_rows FROM (SELECT 1 AS one FROM "Sales 2013"."Order `""]' Lines" WHERE ((hashtext(CAST(CAST("k 4" AS text) AS text))::bigint & 2147483647) % 3) = 1 LIMIT 5) counted;

-- a part by its hash
SELECT count(*) AS counted_rows FROM (SELECT 1 AS one FROM "Sales 2013"."Order `""]' Lines" WHERE ((hashtext(CAST(CAST("k 4" AS text) AS text))::bigint & 2147483647) % 3) = 2 LIMIT 5) counted;

-- token table
CREATE TABLE IF NOT EXISTS "stage"."_bookmarks_tokens" (output_id varchar(32) NOT NULL PRIMARY KEY, job_id varchar(16) NOT NULL, output_name text NOT NULL, fence bigint NOT NULL, published_rows bigint NOT NULL);

-- token row
INSERT INTO "stage"."_bookmarks_tokens" (output_id, job_id, output_name, fence, published_rows) VALUES ('08f20d4142c75a55_e50fc7992e88', '08f20d4142c75a55', 'it''s orders', 0, 0) ON CONFLICT (output_id) DO NOTHING;

-- take a token
UPDATE "stage"."_bookmarks_tokens" SET fence = 15, published_rows = 0 WHERE output_id = '08f20d4142c75a55_e50fc7992e88' AND fence < 15;

-- note how many rows were published
UPDATE "stage"."_bookmarks_tokens" SET published_rows = 42 WHERE output_id = '08f20d4142c75a55_e50fc7992e88';

-- read a token
SELECT fence, published_rows FROM "stage"."_bookmarks_tokens" WHERE output_id = '08f20d4142c75a55_e50fc7992e88';

-- burn tokens
UPDATE "stage"."_bookmarks_tokens" SET fence = 15, published_rows = 0 WHERE job_id = '08f20d4142c75a55' AND fence < 15;

-- stage
CREATE TABLE "stage"."_bm_stage" AS SELECT "id", "Na me" FROM "Sales 2013"."Order `""]' Lines" WHERE 1 = 0;

-- seal the stage
ALTER TABLE "stage"."_bm_stage_load" RENAME TO "_bm_stage";

-- drop a stage
DROP TABLE IF EXISTS "stage"."_bm_stage";

-- make the target
SELECT pg_advisory_xact_lock(hashtext('"Sales 2013"."Order `""]'' Lines"'));

-- make the target
CREATE TABLE IF NOT EXISTS "Sales 2013"."Order `""]' Lines" (LIKE "stage"."_bm_stage", PRIMARY KEY ("id"));

-- empty the target
DELETE FROM "Sales 2013"."Order `""]' Lines";

-- insert
INSERT INTO "Sales 2013"."Order `""]' Lines" ("id", "Na me") SELECT "id", "Na me" FROM "stage"."_bm_stage";

-- upsert
INSERT INTO "Sales 2013"."Order `""]' Lines" ("id", "Na me") SELECT "id", "Na me" FROM (SELECT "id", "Na me" FROM (SELECT "id", "Na me", ROW_NUMBER() OVER (PARTITION BY "id" ORDER BY "Na me" DESC NULLS LAST) AS _bm_rank FROM "stage"."_bm_stage") ranked WHERE _bm_rank = 1 AND 1 = 1) chosen WHERE 1 = 1 ON CONFLICT ("id") DO UPDATE SET "Na me" = excluded."Na me";

-- upsert with a delete set
DELETE FROM "Sales 2013"."Order `""]' Lines" AS old WHERE EXISTS (SELECT 1 FROM (SELECT "id" FROM (SELECT "id", "_bm_deleted", ROW_NUMBER() OVER (PARTITION BY "id" ORDER BY "Na me" DESC NULLS LAST, "_bm_deleted") AS _bm_rank FROM "stage"."_bm_stage") ranked WHERE _bm_rank = 1 AND "_bm_deleted" = 1) gone WHERE old."id" = gone."id");

-- upsert with a delete set
INSERT INTO "Sales 2013"."Order `""]' Lines" ("id", "Na me") SELECT "id", "Na me" FROM (SELECT "id", "Na me" FROM (SELECT "id", "Na me", "_bm_deleted", ROW_NUMBER() OVER (PARTITION BY "id" ORDER BY "Na me" DESC NULLS LAST, "_bm_deleted") AS _bm_rank FROM "stage"."_bm_stage") ranked WHERE _bm_rank = 1 AND "_bm_deleted" = 0) chosen WHERE 1 = 1 ON CONFLICT ("id") DO UPDATE SET "Na me" = excluded."Na me";

-- keys that are NULL
SELECT count(*) FROM "stage"."_bm_stage" WHERE "id" IS NULL;

-- keys that come twice
SELECT count(*) FROM (SELECT 1 AS one FROM "stage"."_bm_stage" GROUP BY "id" HAVING count(*) > 1) repeated;

-- stage tables of a job
SELECT tablename FROM pg_catalog.pg_tables WHERE schemaname = 'stage' AND left(tablename, 4) = '_bm_' ORDER BY tablename;
