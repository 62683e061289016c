-- TPC-H query 4: of each priority, the orders of a quarter of a year with an item that arrived late.
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

SELECT o_orderpriority, COUNT(*) AS order_count
FROM ORDERS
WHERE o_orderdate >= DATE '1993-07-01' AND o_orderdate < DATE '1993-10-01'
  AND EXISTS (SELECT * FROM LINEITEM WHERE l_orderkey = o_orderkey AND l_commitdate < l_receiptdate)
GROUP BY o_orderpriority
ORDER BY o_orderpriority;
