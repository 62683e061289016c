-- TPC-H query 18: orders of more than 300 pieces. The first 100 rows become all; total prices are in
-- cents.
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

SELECT c_name, c_custkey, o_orderkey, o_orderdate, o_totalprice, SUM(l.l_quantity) AS pieces
FROM CUSTOMER, ORDERS, LINEITEM l
WHERE o_orderkey IN (
    SELECT large.l_orderkey FROM LINEITEM large GROUP BY large.l_orderkey HAVING SUM(large.l_quantity) > 300
  )
  AND c_custkey = o_custkey AND o_orderkey = l.l_orderkey
GROUP BY c_name, c_custkey, o_orderkey, o_orderdate, o_totalprice
ORDER BY o_totalprice DESC, o_orderdate;
