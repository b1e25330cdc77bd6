-- columns of the table
SELECT a.attname, format_type(a.atttypid, a.atttypmod) AS declared,
       CASE WHEN a.attnotnull THEN 0 ELSE 1 END AS nullable, '' AS collated, 0 AS is_generated, 1 AS cached
FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = 'Sales 2013' AND c.relname = 'Order `"]'' Lines' AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum;

-- columns of a table without a schema
SELECT a.attname, format_type(a.atttypid, a.atttypmod) AS declared,
       CASE WHEN a.attnotnull THEN 0 ELSE 1 END AS nullable, '' AS collated, 0 AS is_generated, 1 AS cached
FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = CURRENT_SCHEMA() AND c.relname = 'Order `"]'' Lines' AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum;

-- now
SELECT TO_CHAR(CAST(SYSDATE AS timestamptz) AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS.US') AS now_utc;

-- identity
SELECT CURRENT_NAMESPACE || '/' || CURRENT_DATABASE() AS server;

-- who may still write, 0
SELECT 'transaction ' || CAST(xid AS varchar) AS id, CAST(pid AS varchar) AS owner, 0 AS stage,
       TO_CHAR(MIN(txn_start), 'YYYY-MM-DD HH24:MI:SS.US') AS since,
       'pid ' || CAST(pid AS varchar) || ', ' || TRIM(txn_owner) AS who
FROM svv_transactions WHERE pid <> PG_BACKEND_PID() GROUP BY xid, pid, txn_owner;

-- what hides who writes
SELECT 'this user sees no transactions but its own: have a superuser read' AS why
FROM pg_user WHERE usename = CURRENT_USER AND NOT usesuper
UNION ALL
SELECT c.relname || ' is a view, of whose tables nothing is known here: read them'
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = 'Sales 2013' AND c.relname = 'Order `"]'' Lines' AND c.relkind <> 'r';

-- key: integer, 6 digits
SELECT CAST("k 0" AS varchar(41)) AS bookmark_key_0 FROM "Sales 2013"."Order `""]' Lines" WHERE "k 0" > -42 LIMIT 10;

-- key: decimal, 6 digits
SELECT CAST("k 1" AS varchar(41)) AS bookmark_key_0 FROM "Sales 2013"."Order `""]' Lines" WHERE "k 1" > CAST('1234567890.0000000001' AS numeric(38, 10)) LIMIT 10;

-- key: date, 6 digits
SELECT TO_CHAR("k 2", 'YYYY-MM-DD') AS bookmark_key_0 FROM "Sales 2013"."Order `""]' Lines" WHERE "k 2" > CAST('2013-01-31' AS date) LIMIT 10;

-- key: local_time, 6 digits
SELECT TO_CHAR("k 3", 'YYYY-MM-DD HH24:MI:SS.US') AS bookmark_key_0 FROM "Sales 2013"."Order `""]' Lines" WHERE "k 3" > CAST('2013-01-31 23:59:58.123456' AS timestamp) LIMIT 10;

-- key: time, 6 digits
SELECT TO_CHAR("k 4" AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS.US') || '+00:00' AS bookmark_key_0 FROM "Sales 2013"."Order `""]' Lines" WHERE "k 4" > CAST('2013-01-31 23:59:58.123456+00:00' AS timestamptz) LIMIT 10;

-- the last row
SELECT TO_CHAR("k 4" AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS.US') || '+00:00' AS bookmark_key_0, CAST("k 0" AS varchar(41)) AS bookmark_key_1 FROM "Sales 2013"."Order `""]' Lines" WHERE 1 = 1 ORDER BY "k 4" DESC, "k 0" DESC, "k 2" DESC LIMIT 1;

-- a window, from its fourth row
SELECT TO_CHAR("k 4" AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS.US') || '+00:00' AS bookmark_key_0, CAST("k 0" AS varchar(41)) AS bookmark_key_1 FROM "Sales 2013"."Order `""]' Lines" WHERE (("k 0" IS NOT NULL AND (("k 4" >= CAST('2013-01-31 23:59:58.123456+00:00' AS timestamptz) AND ("k 4" > CAST('2013-01-31 23:59:58.123456+00:00' AS timestamptz) OR "k 0" >= 1)) AND (("k 4" >= CAST('2013-01-31 23:59:58.123456+00:00' AS timestamptz) AND ("k 4" > CAST('2013-01-31 23:59:58.123456+00:00' AS timestamptz) OR "k 0" > 1)) OR ("k 4" = CAST('2013-01-31 23:59:58.123456+00:00' AS timestamptz) AND "k 0" = 1 AND NOT (("k 0" = 1 AND "k 2" = CAST('2013-01-31' AS date)))))) AND (("k 4" <= CAST('2013-01-31 23:59:58.123456+00:00' AS timestamptz) AND ("k 4" < CAST('2013-01-31 23:59:58.123456+00:00' AS timestamptz) OR "k 0" < 2)) OR ("k 4" = CAST('2013-01-31 23:59:58.123456+00:00' AS timestamptz) AND "k 0" = 2 AND (("k 0" = 2 AND "k 2" = CAST('2013-01-31' AS date)))))) OR ("k 0" IS NULL)) ORDER BY "k 4" ASC, "k 0" ASC, "k 2" ASC LIMIT 1 OFFSET 3;

-- rows without a place
SELECT count(*) AS counted_rows FROM (SELECT 1 AS one FROM "Sales 2013"."Order `""]' Lines" WHERE "k 0" IS NULL LIMIT 101) counted;

-- a window that goes down
SELECT "k 0" FROM "Sales 2013"."Order `""]' Lines" WHERE "k 0" < 7 AND "k 0" >= 5 LIMIT 5;

-- a part by its hash
SELECT count(*) AS counted_rows FROM (SELECT 1 AS one FROM "Sales 2013"."Order `""]' Lines" WHERE (MOD(STRTOL(SUBSTRING(MD5(CAST(TO_CHAR("k 4" AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS.US') || '+00:00' AS varchar)), 1, 8), 16), 3) = 0 OR MOD(STRTOL(SUBSTRING(MD5(CAST(TO_CHAR("k 4" AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS.US') || '+00:00' AS varchar)), 1, 8), 16), 3) IS NULL) LIMIT 5) counted;

-- a part by its hash
SELECT count(*) AS counted_rows FROM (SELECT 1 AS one FROM "Sales 2013"."Order `""]' Lines" WHERE MOD(STRTOL(SUBSTRING(MD5(CAST(TO_CHAR("k 4" AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS.US') || '+00:00' AS varchar)), 1, 8), 16), 3) = 1 LIMIT 5) counted;

-- a part by its hash
SELECT count(*) AS counted_rows FROM (SELECT 1 AS one FROM "Sales 2013"."Order `""]' Lines" WHERE MOD(STRTOL(SUBSTRING(MD5(CAST(TO_CHAR("k 4" AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS.US') || '+00:00' AS varchar)), 1, 8), 16), 3) = 2 LIMIT 5) counted;
