-- The tables of the example orders_report: run it once in the database of the connection `dw`.
CREATE SCHEMA IF NOT EXISTS reporting;

CREATE TABLE IF NOT EXISTS reporting.orders (
    id bigint PRIMARY KEY,
    placed_on date,
    amount numeric(12, 2),
    is_deleted boolean NOT NULL,
    updated_at timestamptz NOT NULL
);

CREATE OR REPLACE VIEW reporting.orders_by_day AS
SELECT placed_on, count(*) AS orders, sum(amount) AS amount
FROM reporting.orders
WHERE NOT is_deleted
GROUP BY placed_on;
