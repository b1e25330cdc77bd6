-- columns of the table
SELECT TOP (100000) c.name AS column_name,
       CASE WHEN t.name IN ('decimal', 'numeric') THEN CONCAT(t.name, '(', c.precision, ',', c.scale, ')')
            WHEN t.name IN ('datetime2', 'datetimeoffset') THEN CONCAT(t.name, '(', c.scale, ')')
            ELSE t.name END AS declared,
       CAST(c.is_nullable AS int) AS nullable, COALESCE(c.collation_name, '') AS collated,
       CASE WHEN c.is_identity = 1 OR d.definition LIKE '%NEXT VALUE FOR%' THEN 1 ELSE 0 END
       AS is_generated, 1 AS cached
FROM sys.columns c JOIN sys.types t ON t.user_type_id = c.system_type_id
LEFT JOIN sys.default_constraints d ON d.object_id = c.default_object_id
WHERE c.object_id = OBJECT_ID(N'[Sales 2013].[Order `"]]'' Lines]') ORDER BY c.column_id;

-- columns of a table without a schema
SELECT TOP (100000) c.name AS column_name,
       CASE WHEN t.name IN ('decimal', 'numeric') THEN CONCAT(t.name, '(', c.precision, ',', c.scale, ')')
            WHEN t.name IN ('datetime2', 'datetimeoffset') THEN CONCAT(t.name, '(', c.scale, ')')
            ELSE t.name END AS declared,
       CAST(c.is_nullable AS int) AS nullable, COALESCE(c.collation_name, '') AS collated,
       CASE WHEN c.is_identity = 1 OR d.definition LIKE '%NEXT VALUE FOR%' THEN 1 ELSE 0 END
       AS is_generated, 1 AS cached
FROM sys.columns c JOIN sys.types t ON t.user_type_id = c.system_type_id
LEFT JOIN sys.default_constraints d ON d.object_id = c.default_object_id
WHERE c.object_id = OBJECT_ID(N'[Order `"]]'' Lines]') ORDER BY c.column_id;

-- unique indexes
SELECT TOP (100000) i.index_id, CAST(i.is_primary_key AS int) AS is_primary, c.name AS column_name,
       0 AS is_deferred
FROM sys.indexes i
JOIN sys.index_columns x ON x.object_id = i.object_id AND x.index_id = i.index_id AND x.key_ordinal > 0
JOIN sys.columns c ON c.object_id = x.object_id AND c.column_id = x.column_id
WHERE i.object_id = OBJECT_ID(N'[Sales 2013].[Order `"]]'' Lines]')
  AND i.is_unique = 1 AND i.has_filter = 0 AND i.is_disabled = 0
ORDER BY i.index_id, x.key_ordinal;

-- now
SELECT CONVERT(varchar(26), SYSUTCDATETIME(), 121) AS now_utc;

-- identity
SELECT CONVERT(varchar(36), service_broker_guid) AS server FROM sys.databases WHERE database_id = DB_ID();

-- who may still write, 0
SELECT CONCAT('request ', r.session_id, ' ', r.request_id, ' ', CONVERT(varchar(23), r.start_time, 121))
       AS id, CONVERT(varchar(11), r.session_id) AS owner, 0 AS stage, CONVERT(varchar(26), DATEADD(minute, -60 - DATEPART(tzoffset, SYSDATETIMEOFFSET()), CAST(r.start_time AS datetime2(6))), 121) AS since,
       CONCAT('session ', r.session_id, ', ', s.program_name, ', ', s.login_name) AS who
FROM sys.dm_exec_requests r JOIN sys.dm_exec_sessions s ON s.session_id = r.session_id
WHERE s.is_user_process = 1 AND r.session_id <> @@SPID;

-- who may still write, 1
SELECT CONCAT('transaction ', t.transaction_id, ' ', x.session_id) AS id,
       CONVERT(varchar(11), x.session_id) AS owner, 1 AS stage,
       CONVERT(varchar(26), DATEADD(minute, -60 - DATEPART(tzoffset, SYSDATETIMEOFFSET()), CAST(t.transaction_begin_time AS datetime2(6))), 121) AS since,
       CONCAT('session ', x.session_id, ', ', s.program_name, ', ', s.login_name) AS who
FROM sys.dm_tran_active_transactions t
LEFT JOIN sys.dm_tran_session_transactions x ON x.transaction_id = t.transaction_id
LEFT JOIN sys.dm_exec_sessions s ON s.session_id = x.session_id
WHERE (x.session_id <> @@SPID) OR (x.session_id IS NULL AND t.transaction_type = 4);

-- what hides who writes
SELECT 'this database is read-only here: read from its primary' AS why
WHERE CONVERT(varchar(20), DATABASEPROPERTYEX(DB_NAME(), 'Updateability')) <> 'READ_WRITE'
UNION ALL
SELECT CONCAT(o.name, ' is a view, of whose tables nothing is known here: read them') FROM sys.objects o
WHERE o.object_id = OBJECT_ID(N'[Sales 2013].[Order `"]]'' Lines]') AND o.type = 'V'
UNION ALL
SELECT CONCAT(t.name, ' is an external table, whose transactions are open elsewhere: read it there')
FROM sys.tables t WHERE t.object_id = OBJECT_ID(N'[Sales 2013].[Order `"]]'' Lines]') AND t.is_external = 1;

-- key: integer, 6 digits
SELECT TOP (10) CONVERT(varchar(41), [k 0]) AS bookmark_key_0 FROM [Sales 2013].[Order `"]]' Lines] WHERE [k 0] > -42;

-- key: decimal, 6 digits
SELECT TOP (10) CONVERT(varchar(41), [k 1]) AS bookmark_key_0 FROM [Sales 2013].[Order `"]]' Lines] WHERE [k 1] > CAST(N'1234567890.0000000001' AS decimal(38, 10));

-- key: date, 0 digits
SELECT TOP (10) CONVERT(varchar(10), [k 2], 23) AS bookmark_key_0 FROM [Sales 2013].[Order `"]]' Lines] WHERE [k 2] > CAST(N'2013-01-31' AS date);

-- key: local_time, 6 digits
SELECT TOP (10) CONVERT(varchar(27), CAST([k 3] AS datetime2(7)), 121) AS bookmark_key_0 FROM [Sales 2013].[Order `"]]' Lines] WHERE [k 3] > CAST(N'2013-01-31T23:59:58.123456' AS datetime2(7));

-- key: time, 6 digits
SELECT TOP (10) CONVERT(varchar(27), CAST(SWITCHOFFSET([k 4], '+00:00') AS datetime2(7)), 121) + '+00:00' AS bookmark_key_0 FROM [Sales 2013].[Order `"]]' Lines] WHERE [k 4] > CAST(N'2013-01-31T23:59:58.123456+00:00' AS datetimeoffset(7));

-- key: text, 6 digits
SELECT TOP (10) [k 5] AS bookmark_key_0 FROM [Sales 2013].[Order `"]]' Lines] WHERE [k 5] > N'it''s a \ and \' + N'
more';

-- key: local_time, 2 digits
SELECT TOP (10) CONVERT(varchar(27), CAST([k 6] AS datetime2(7)), 121) AS bookmark_key_0 FROM [Sales 2013].[Order `"]]' Lines] WHERE [k 6] > CAST(N'2013-01-31T23:59:58.123456' AS datetime2(7));

-- the last row
SELECT TOP (1) CONVERT(varchar(27), CAST(SWITCHOFFSET([k 4], '+00:00') AS datetime2(7)), 121) + '+00:00' AS bookmark_key_0, CONVERT(varchar(41), [k 0]) AS bookmark_key_1 FROM [Sales 2013].[Order `"]]' Lines] WHERE 1 = 1 ORDER BY [k 4] DESC, [k 0] DESC, [k 2] DESC;

-- a window, from its fourth row
SELECT CONVERT(varchar(27), CAST(SWITCHOFFSET([k 4], '+00:00') AS datetime2(7)), 121) + '+00:00' AS bookmark_key_0, CONVERT(varchar(41), [k 0]) AS bookmark_key_1 FROM [Sales 2013].[Order `"]]' Lines] WHERE (([k 0] IS NOT NULL AND (([k 4] >= CAST(N'2013-01-31T23:59:58.123456+00:00' AS datetimeoffset(7)) AND ([k 4] > CAST(N'2013-01-31T23:59:58.123456+00:00' AS datetimeoffset(7)) OR [k 0] >= 1)) AND (([k 4] >= CAST(N'2013-01-31T23:59:58.123456+00:00' AS datetimeoffset(7)) AND ([k 4] > CAST(N'2013-01-31T23:59:58.123456+00:00' AS datetimeoffset(7)) OR [k 0] > 1)) OR ([k 4] = CAST(N'2013-01-31T23:59:58.123456+00:00' AS datetimeoffset(7)) AND [k 0] = 1 AND NOT (([k 0] = 1 AND [k 2] = CAST(N'2013-01-31' AS date)))))) AND (([k 4] <= CAST(N'2013-01-31T23:59:58.123456+00:00' AS datetimeoffset(7)) AND ([k 4] < CAST(N'2013-01-31T23:59:58.123456+00:00' AS datetimeoffset(7)) OR [k 0] < 2)) OR ([k 4] = CAST(N'2013-01-31T23:59:58.123456+00:00' AS datetimeoffset(7)) AND [k 0] = 2 AND (([k 0] = 2 AND [k 2] = CAST(N'2013-01-31' AS date)))))) OR ([k 0] IS NULL)) ORDER BY [k 4] ASC, [k 0] ASC, [k 2] ASC OFFSET 3 ROWS FETCH NEXT 1 ROWS ONLY;

-- rows without a place
SELECT count(*) AS counted_rows FROM (SELECT TOP (101) 1 AS one FROM [Sales 2013].[Order `"]]' Lines] WHERE [k 0] IS NULL) counted;

-- a window that goes down
SELECT TOP (5) [k 0] FROM [Sales 2013].[Order `"]]' Lines] WHERE [k 0] < 7 AND [k 0] >= 5;

-- a part by its hash
SELECT count(*) AS counted_rows FROM (SELECT TOP (5) 1 AS one FROM [Sales 2013].[Order `"]]' Lines] WHERE (ABS(CHECKSUM(CONVERT(varchar(27), CAST(SWITCHOFFSET([k 4], '+00:00') AS datetime2(7)), 121) + '+00:00') % 3) = 0 OR ABS(CHECKSUM(CONVERT(varchar(27), CAST(SWITCHOFFSET([k 4], '+00:00') AS datetime2(7)), 121) + '+00:00') % 3) IS NULL)) counted;

-- a part by its hash
SELECT count(*) AS counted_rows FROM (SELECT TOP (5) 1 AS one FROM [Sales 2013].[Order `"]]' Lines] WHERE ABS(CHECKSUM(CONVERT(varchar(27), CAST(SWITCHOFFSET([k 4], '+00:00') AS datetime2(7)), 121) + '+00:00') % 3) = 1) counted;

-- a part by its hash
SELECT count(*) AS counted_rows FROM (SELECT TOP (5) 1 AS one FROM [Sales 2013].[Order `"]]' Lines] WHERE ABS(CHECKSUM(CONVERT(varchar(27), CAST(SWITCHOFFSET([k 4], '+00:00') AS datetime2(7)), 121) + '+00:00') % 3) = 2) counted;
