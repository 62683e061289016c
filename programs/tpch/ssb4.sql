-- Query 4 of the star schema benchmark over the tables of TPC-H: by regions of supplier and customer and
-- by type of part, the pieces ordered in a year.
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

CREATE STREAM PART(
  p_partkey int, p_name string, p_mfgr string, p_brand string, p_type string, p_size int,
  p_container string, p_retailprice int
)
FROM FILE 'facts/part.tbl' LINE DELIMITED CSV(delimiter := '|');

CREATE STREAM SUPPLIER(
  s_suppkey int, s_name string, s_address string, s_nationkey int, s_phone string, s_acctbal int,
  s_comment string
)
FROM FILE 'facts/supplier.tbl' LINE DELIMITED CSV(delimiter := '|');

CREATE TABLE NATION(n_nationkey int, n_name string, n_regionkey int)
FROM FILE 'facts/nation.tbl' LINE DELIMITED CSV(delimiter := '|');

SELECT sn.n_regionkey AS supplier_region, cn.n_regionkey AS customer_region, p_type,
  SUM(l_quantity) AS pieces
FROM CUSTOMER, ORDERS, LINEITEM, PART, SUPPLIER, NATION cn, NATION sn
WHERE c_custkey = o_custkey AND o_orderkey = l_orderkey AND p_partkey = l_partkey
  AND s_suppkey = l_suppkey AND o_orderdate >= DATE '1997-01-01' AND o_orderdate < DATE '1998-01-01'
  AND cn.n_nationkey = c_nationkey AND sn.n_nationkey = s_nationkey
GROUP BY sn.n_regionkey, cn.n_regionkey, p_type;
