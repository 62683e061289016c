-- TPC-H query 9: by nation of the supplier and year, the profit with green parts. In hundredths of a
-- cent.
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

CREATE STREAM LINEITEM(
  l_orderkey int, l_partkey int, l_suppkey int, l_linenumber int, l_quantity int, l_extendedprice int,
  l_discount int, l_tax int, l_returnflag string, l_linestatus string, l_shipdate date,
  l_commitdate date, l_receiptdate date, l_shipinstruct string, l_shipmode string
)
FROM FILE 'facts/lineitem.tbl' LINE DELIMITED CSV(delimiter := '|');

CREATE STREAM PARTSUPP(ps_partkey int, ps_suppkey int, ps_availqty int, ps_supplycost int)
FROM FILE 'facts/partsupp.tbl' LINE DELIMITED CSV(delimiter := '|');

CREATE STREAM ORDERS(
  o_orderkey int, o_custkey int, o_orderstatus string, o_totalprice int, o_orderdate date,
  o_orderpriority string, o_clerk string, o_shippriority int, o_comment string
)
FROM FILE 'facts/orders.tbl' LINE DELIMITED CSV(delimiter := '|');

CREATE TABLE NATION(n_nationkey int, n_name string, n_regionkey int)
FROM FILE 'facts/nation.tbl' LINE DELIMITED CSV(delimiter := '|');

SELECT nation, o_year, SUM(amount) AS sum_profit
FROM (
  SELECT n_name AS nation, EXTRACT(YEAR FROM o_orderdate) AS o_year,
    l_extendedprice * (100 - l_discount) - 100 * ps_supplycost * l_quantity AS amount
  FROM PART, SUPPLIER, LINEITEM, PARTSUPP, ORDERS, NATION
  WHERE s_suppkey = l_suppkey AND ps_suppkey = l_suppkey AND ps_partkey = l_partkey
    AND p_partkey = l_partkey AND o_orderkey = l_orderkey AND s_nationkey = n_nationkey
    AND p_name LIKE '%green%'
) AS profit
GROUP BY nation, o_year
ORDER BY nation, o_year DESC;
