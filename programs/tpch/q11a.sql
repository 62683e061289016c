-- Query 11 of TPC-H without its condition, as experiments with incremental maintenance use it: what the
-- stock of each part is worth.
CREATE STREAM PARTSUPP(ps_partkey int, ps_suppkey int, ps_availqty int, ps_supplycost int)
FROM FILE 'facts/partsupp.tbl' LINE DELIMITED CSV(delimiter := '|');

CREATE STREAM SUPPLIER(
  s_suppkey int, s_name string, s_address string, s_nationkey int, s_phone string, s_acctbal int,
  s_comment string
)
FROM FILE 'facts/supplier.tbl' LINE DELIMITED CSV(delimiter := '|');

SELECT ps_partkey, SUM(ps_supplycost * ps_availqty) AS worth
FROM PARTSUPP, SUPPLIER
WHERE ps_suppkey = s_suppkey
GROUP BY ps_partkey;
