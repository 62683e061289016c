-- TPC-H query 7: what was shipped between France and Germany in two years. In hundredths of a cent.
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

CREATE STREAM ORDERS(
  o_orderkey int, o_custkey int, o_orderstatus string, o_totalprice int, o_orderdate date,
  o_orderpriority string, o_clerk string, o_shippriority int, o_comment string
)
FROM FILE 'facts/orders.tbl' LINE DELIMITED CSV(delimiter := '|');

CREATE STREAM CUSTOMER(
  c_custkey int, c_name string, c_address string, c_nationkey int, c_phone string, c_acctbal int,
  c_mktsegment string
)
FROM FILE 'facts/customer.tbl' LINE DELIMITED CSV(delimiter := '|');

CREATE TABLE NATION(n_nationkey int, n_name string, n_regionkey int)
FROM FILE 'facts/nation.tbl' LINE DELIMITED CSV(delimiter := '|');

SELECT supp_nation, cust_nation, l_year, SUM(volume) AS revenue
FROM (
  SELECT home.n_name AS supp_nation, away.n_name AS cust_nation,
    EXTRACT(YEAR FROM l_shipdate) AS l_year, l_extendedprice * (100 - l_discount) AS volume
  FROM SUPPLIER, LINEITEM, ORDERS, CUSTOMER, NATION home, NATION away
  WHERE s_suppkey = l_suppkey AND o_orderkey = l_orderkey AND c_custkey = o_custkey
    AND s_nationkey = home.n_nationkey AND c_nationkey = away.n_nationkey
    AND (home.n_name = 'FRANCE' AND away.n_name = 'GERMANY'
      OR home.n_name = 'GERMANY' AND away.n_name = 'FRANCE')
    AND l_shipdate BETWEEN DATE '1995-01-01' AND DATE '1996-12-31'
) AS shipping
GROUP BY supp_nation, cust_nation, l_year
ORDER BY supp_nation, cust_nation, l_year;
