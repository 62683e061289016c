-- TPC-H query 3: what the orders of one market segment are worth that are not shipped by a date. The
-- first 10 rows become all. Revenue is in hundredths of a cent.
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

CREATE STREAM LINEITEM(
  l_orderkey int, l_partkey int, l_suppkey int, l_linenumber int, l_quantity int, l_extendedprice int,
  l_discount int, l_tax int, l_returnflag string, l_linestatus string, l_shipdate date,
  l_commitdate date, l_receiptdate date, l_shipinstruct string, l_shipmode string
)
FROM FILE 'facts/lineitem.tbl' LINE DELIMITED CSV(delimiter := '|');

SELECT l_orderkey, SUM(l_extendedprice * (100 - l_discount)) AS revenue, o_orderdate, o_shippriority
FROM CUSTOMER, ORDERS, LINEITEM
WHERE c_mktsegment = 'BUILDING' AND c_custkey = o_custkey AND l_orderkey = o_orderkey
  AND o_orderdate < DATE '1995-03-15' AND l_shipdate > DATE '1995-03-15'
GROUP BY l_orderkey, o_orderdate, o_shippriority
ORDER BY revenue DESC, o_orderdate;
