-- TPC-H query 11: the parts that are an important share of the stock in Germany. The share is a parameter
-- that depends on the scale factor: the rows that are shipped are few, so it is 2 percent.
CREATE STREAM PARTSUPP(ps_partkey int, ps_suppkey int, ps_availqty int, ps_supplycost int)
FROM FILE 'facts/partsupp.tbl' LINE DELIMITED CSV(delimiter := '|');

CREATE STREAM SUPPLIER(
  s_suppkey int, s_name string, s_address string, s_nationkey int, s_phone string, s_acctbal int,
  s_comment string
)
FROM FILE 'facts/supplier.tbl' LINE DELIMITED CSV(delimiter := '|');

CREATE TABLE NATION(n_nationkey int, n_name string, n_regionkey int)
FROM FILE 'facts/nation.tbl' LINE DELIMITED CSV(delimiter := '|');

SELECT ps_partkey, SUM(ps_supplycost * ps_availqty) AS worth
FROM PARTSUPP, SUPPLIER, NATION
WHERE ps_suppkey = s_suppkey AND s_nationkey = n_nationkey AND n_name = 'GERMANY'
GROUP BY ps_partkey
HAVING SUM(ps_supplycost * ps_availqty) > (
  SELECT COALESCE(SUM(stock.ps_supplycost * stock.ps_availqty), 0) * 0.02
  FROM PARTSUPP stock, SUPPLIER source, NATION home
  WHERE stock.ps_suppkey = source.s_suppkey AND source.s_nationkey = home.n_nationkey
    AND home.n_name = 'GERMANY'
)
ORDER BY worth DESC;
