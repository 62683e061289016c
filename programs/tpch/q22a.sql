-- Query 22 of TPC-H as experiments with incremental maintenance use it: by nation, the balances of
-- customers without orders that are less than the sum of all balances above 0.
CREATE STREAM CUSTOMER(
  c_custkey int, c_name string, c_address string, c_nationkey int, c_phone string, c_acctbal int,
  c_mktsegment string
)
FROM FILE 'facts/customer.tbl' LINE DELIMITED CSV(delimiter := '|');

CREATE STREAM ORDERS(
  o_orderkey int, o_custkey int, o_orderstatus string, o_totalprice int, o_orderdate date,
  o_orderpriority string, o_clerk string, o_shippriority int, o_comment string
)
FROM FILE 'facts/orders.tbl' LINE DELIMITED CSV(delimiter := '|');

SELECT c.c_nationkey, SUM(c.c_acctbal) AS balance
FROM CUSTOMER c
WHERE c.c_acctbal < (SELECT COALESCE(SUM(other.c_acctbal), 0) FROM CUSTOMER other WHERE other.c_acctbal > 0)
  AND 0 = (SELECT COUNT(*) FROM ORDERS WHERE o_custkey = c.c_custkey)
GROUP BY c.c_nationkey;
