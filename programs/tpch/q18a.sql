-- Query 18 of TPC-H as experiments with incremental maintenance use it: for each customer, the pieces in
-- orders of more than 100 pieces.
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

SELECT c_custkey, SUM(l.l_quantity) AS pieces
FROM CUSTOMER, ORDERS, LINEITEM l
WHERE c_custkey = o_custkey AND o_orderkey = l.l_orderkey
  AND 1 <= (
    SELECT COUNT(*)
    FROM LINEITEM same
    WHERE same.l_orderkey = l.l_orderkey
      AND 100 < (
        SELECT COALESCE(SUM(every.l_quantity), 0) FROM LINEITEM every WHERE every.l_orderkey = same.l_orderkey
      )
  )
GROUP BY c_custkey;
