-- TPC-H query 15: the suppliers with the highest revenue in a quarter of a year. The maximum is written
-- as >= ALL. Revenue is in hundredths of a cent.
CREATE STREAM SUPPLIER(
  s_suppkey int, s_name string, s_address string, s_nationkey int, s_phone string, s_acctbal int,
  s_comment string
)
FROM FILE 'facts/supplier.tbl' LINE DELIMITED CSV(delimiter := '|');

CREATE STREAM LINEITEM(
  l_orderkey int, l_partkey int, l_suppkey int, l_linenumber int, l_quantity int, l_extendedprice int,
  l_discount int, l_tax int, l_returnflag string, l_linestatus string, l_shipdate date,
  l_commitdate date, l_receiptdate date, l_shipinstruct string, l_shipmode string
)
FROM FILE 'facts/lineitem.tbl' LINE DELIMITED CSV(delimiter := '|');

WITH revenue(supplier_no, total_revenue) AS (
  SELECT l_suppkey, SUM(l_extendedprice * (100 - l_discount))
  FROM LINEITEM
  WHERE l_shipdate >= DATE '1996-01-01' AND l_shipdate < DATE '1996-04-01'
  GROUP BY l_suppkey
)
SELECT DISTINCT s_suppkey, s_name, s_address, s_phone, total_revenue
FROM SUPPLIER, revenue
WHERE s_suppkey = supplier_no AND total_revenue >= ALL (SELECT other.total_revenue FROM revenue other)
ORDER BY s_suppkey;
