-- columns of the table
SELECT column_name,
       CASE WHEN data_type = 'NUMBER' THEN 'NUMBER(' || NVL(TO_CHAR(data_precision), '*') || ','
                 || NVL(TO_CHAR(data_scale), '*') || ')'
            ELSE data_type END AS declared,
       CASE nullable WHEN 'Y' THEN 1 ELSE 0 END AS is_nullable, CAST(NULL AS VARCHAR2(1)) AS collated,
       CASE identity_column WHEN 'YES' THEN 1 ELSE 0 END AS is_generated, 1 AS cached
FROM all_tab_columns WHERE owner = 'Sales 2013' AND table_name = 'Order `"]'' Lines' ORDER BY column_id;

-- columns of a table without a schema
SELECT column_name,
       CASE WHEN data_type = 'NUMBER' THEN 'NUMBER(' || NVL(TO_CHAR(data_precision), '*') || ','
                 || NVL(TO_CHAR(data_scale), '*') || ')'
            ELSE data_type END AS declared,
       CASE nullable WHEN 'Y' THEN 1 ELSE 0 END AS is_nullable, CAST(NULL AS VARCHAR2(1)) AS collated,
       CASE identity_column WHEN 'YES' THEN 1 ELSE 0 END AS is_generated, 1 AS cached
FROM all_tab_columns WHERE owner = SYS_CONTEXT('USERENV', 'CURRENT_SCHEMA') AND table_name = 'Order `"]'' Lines' ORDER BY column_id;

-- unique indexes
SELECT i.index_name, CASE WHEN k.constraint_name IS NULL THEN 0 ELSE 1 END AS is_primary, x.column_name,
       0 AS is_deferred
FROM all_indexes i
JOIN all_ind_columns x ON x.index_owner = i.owner AND x.index_name = i.index_name
LEFT JOIN all_constraints k ON k.owner = i.table_owner AND k.table_name = i.table_name
                           AND k.index_name = i.index_name AND k.constraint_type = 'P'
WHERE i.table_owner = 'Sales 2013' AND i.table_name = 'Order `"]'' Lines' AND i.uniqueness = 'UNIQUE'
  AND i.index_type = 'NORMAL' AND i.status <> 'UNUSABLE'
ORDER BY i.index_name, x.column_position;

-- now
SELECT TO_CHAR(SYS_EXTRACT_UTC(SYSTIMESTAMP), 'YYYY-MM-DD HH24:MI:SS.FF6') AS now_utc FROM DUAL;

-- identity
SELECT TO_CHAR(dbid) || '/' || TO_CHAR(resetlogs_change#) || '/' || SYS_CONTEXT('USERENV', 'CON_NAME') AS server FROM v$database;

-- who may still write, 0
SELECT 'call ' || s.sid || ' ' || s.serial# || ' ' || NVL(s.sql_exec_id, 0) AS id,
       s.sid || ',' || s.serial# AS owner, 0 AS stage,
       TO_CHAR(SYS_EXTRACT_UTC(SYSTIMESTAMP) - NUMTODSINTERVAL(s.last_call_et + 1, 'SECOND'), 'YYYY-MM-DD HH24:MI:SS.FF9') AS since,
       'session ' || s.sid || ', ' || s.program || ', ' || s.username AS who
FROM v$session s
WHERE s.type = 'USER' AND s.status = 'ACTIVE' AND s.audsid <> SYS_CONTEXT('USERENV', 'SESSIONID');

-- who may still write, 1
SELECT 'transaction ' || t.xidusn || '.' || t.xidslot || '.' || t.xidsqn AS id,
       CASE WHEN s.sid IS NULL THEN NULL ELSE s.sid || ',' || s.serial# END AS owner, 1 AS stage,
       TO_CHAR(SYS_EXTRACT_UTC(FROM_TZ(CAST(t.start_date AS TIMESTAMP), TO_CHAR(SYSTIMESTAMP, 'TZH:TZM'))) - INTERVAL '1' HOUR, 'YYYY-MM-DD HH24:MI:SS.FF9') AS since,
       'session ' || s.sid || ', ' || s.program || ', ' || s.username AS who
FROM v$transaction t LEFT JOIN v$session s ON s.saddr = t.ses_addr
WHERE s.audsid IS NULL OR s.audsid <> SYS_CONTEXT('USERENV', 'SESSIONID');

-- what hides who writes
SELECT 'this database is a standby: read from its primary' AS why FROM v$database
WHERE database_role <> 'PRIMARY'
UNION ALL
SELECT 'several instances write into this database, and each hands out numbers of its own' FROM gv$instance
HAVING COUNT(*) > 1
UNION ALL
SELECT o.object_name || ' is a ' || LOWER(o.object_type) || ', of whose tables nothing is known here: '
       || 'read them'
FROM all_objects o WHERE o.owner = 'Sales 2013' AND o.object_name = 'Order `"]'' Lines' AND o.object_type IN ('VIEW', 'MATERIALIZED VIEW');

-- key: integer, 6 digits
SELECT TO_CHAR("k 0", 'TM9', 'NLS_NUMERIC_CHARACTERS=''.,''') AS bookmark_key_0 FROM "Sales 2013"."Order `""]' Lines" WHERE "k 0" > -42 FETCH FIRST 10 ROWS ONLY;

-- key: decimal, 6 digits
SELECT REGEXP_REPLACE(TO_CHAR("k 1", 'TM9', 'NLS_NUMERIC_CHARACTERS=''.,'''), '^(-?)[.]', '\10.') AS bookmark_key_0 FROM "Sales 2013"."Order `""]' Lines" WHERE "k 1" > 1234567890.0000000001 FETCH FIRST 10 ROWS ONLY;

-- key: local_time, 0 digits
SELECT TO_CHAR(CAST("k 2" AS TIMESTAMP(9)), 'YYYY-MM-DD HH24:MI:SS.FF9') AS bookmark_key_0 FROM "Sales 2013"."Order `""]' Lines" WHERE "k 2" > TO_DATE('2013-01-31 23:59:58', 'YYYY-MM-DD HH24:MI:SS') FETCH FIRST 10 ROWS ONLY;

-- key: local_time, 6 digits
SELECT TO_CHAR(CAST("k 3" AS TIMESTAMP(9)), 'YYYY-MM-DD HH24:MI:SS.FF9') AS bookmark_key_0 FROM "Sales 2013"."Order `""]' Lines" WHERE "k 3" > TIMESTAMP '2013-01-31 23:59:58.123456' FETCH FIRST 10 ROWS ONLY;

-- key: time, 6 digits
SELECT TO_CHAR("k 4" AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS.FF9') || '+00:00' AS bookmark_key_0 FROM "Sales 2013"."Order `""]' Lines" WHERE "k 4" > TIMESTAMP '2013-01-31 23:59:58.123456 +00:00' FETCH FIRST 10 ROWS ONLY;

-- the last row
SELECT TO_CHAR("k 4" AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS.FF9') || '+00:00' AS bookmark_key_0, TO_CHAR("k 0", 'TM9', 'NLS_NUMERIC_CHARACTERS=''.,''') AS bookmark_key_1 FROM "Sales 2013"."Order `""]' Lines" WHERE 1 = 1 ORDER BY "k 4" DESC, "k 0" DESC, "k 2" DESC FETCH FIRST 1 ROWS ONLY;

-- a window, from its fourth row
SELECT TO_CHAR("k 4" AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS.FF9') || '+00:00' AS bookmark_key_0, TO_CHAR("k 0", 'TM9', 'NLS_NUMERIC_CHARACTERS=''.,''') AS bookmark_key_1 FROM "Sales 2013"."Order `""]' Lines" WHERE (("k 0" IS NOT NULL AND (("k 4" >= TIMESTAMP '2013-01-31 23:59:58.123456 +00:00' AND ("k 4" > TIMESTAMP '2013-01-31 23:59:58.123456 +00:00' OR "k 0" >= 1)) AND (("k 4" >= TIMESTAMP '2013-01-31 23:59:58.123456 +00:00' AND ("k 4" > TIMESTAMP '2013-01-31 23:59:58.123456 +00:00' OR "k 0" > 1)) OR ("k 4" = TIMESTAMP '2013-01-31 23:59:58.123456 +00:00' AND "k 0" = 1 AND NOT (("k 0" = 1 AND "k 2" = TO_DATE('2013-01-31 23:59:58', 'YYYY-MM-DD HH24:MI:SS')))))) AND (("k 4" <= TIMESTAMP '2013-01-31 23:59:58.123456 +00:00' AND ("k 4" < TIMESTAMP '2013-01-31 23:59:58.123456 +00:00' OR "k 0" < 2)) OR ("k 4" = TIMESTAMP '2013-01-31 23:59:58.123456 +00:00' AND "k 0" = 2 AND (("k 0" = 2 AND "k 2" = TO_DATE('2013-01-31 23:59:58', 'YYYY-MM-DD HH24:MI:SS')))))) OR ("k 0" IS NULL)) ORDER BY "k 4" ASC, "k 0" ASC, "k 2" ASC OFFSET 3 ROWS FETCH NEXT 1 ROWS ONLY;

-- rows without a place
SELECT count(*) AS counted_rows FROM (SELECT 1 AS one FROM "Sales 2013"."Order `""]' Lines" WHERE "k 0" IS NULL FETCH FIRST 101 ROWS ONLY) counted;

-- a window that goes down
SELECT "k 0" FROM "Sales 2013"."Order `""]' Lines" WHERE "k 0" < 7 AND "k 0" >= 5 FETCH FIRST 5 ROWS ONLY;

-- a part by its hash
SELECT count(*) AS counted_rows FROM (SELECT 1 AS one FROM "Sales 2013"."Order `""]' Lines" WHERE (ORA_HASH(TO_CHAR("k 4" AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS.FF9') || '+00:00', 2) = 0 OR ORA_HASH(TO_CHAR("k 4" AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS.FF9') || '+00:00', 2) IS NULL) FETCH FIRST 5 ROWS ONLY) counted;

-- a part by its hash
SELECT count(*) AS counted_rows FROM (SELECT 1 AS one FROM "Sales 2013"."Order `""]' Lines" WHERE ORA_HASH(TO_CHAR("k 4" AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS.FF9') || '+00:00', 2) = 1 FETCH FIRST 5 ROWS ONLY) counted;

-- a part by its hash
SELECT count(*) AS counted_rows FROM (SELECT 1 AS one FROM "Sales 2013"."Order `""]' Lines" WHERE ORA_HASH(TO_CHAR("k 4" AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS.FF9') || '+00:00', 2) = 2 FETCH FIRST 5 ROWS ONLY) counted;
