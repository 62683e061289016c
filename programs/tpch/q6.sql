-- TPC-H query 6: what small discounts cost in a year, for small quantities. In hundredths of a cent.
CREATE STREAM LINEITEM(
  l_orderkey int, l_partkey int, l_suppkey int, l_linenumber int, l_quantity int, l_extendedprice int,
  l_discount int, l_tax int, l_returnflag string, l_linestatus string, l_shipdate date,
  l_commitdate date, l_receiptdate date, l_shipinstruct string, l_shipmode string
)
FROM FILE 'facts/lineitem.tbl' LINE DELIMITED CSV(delimiter := '|');

SELECT COALESCE(SUM(l_extendedprice * l_discount), 0) AS revenue
FROM LINEITEM
WHERE l_shipdate >= DATE '1994-01-01' AND l_shipdate < DATE '1995-01-01'
  AND l_discount BETWEEN 5 AND 7 AND l_quantity < 24;
