-- TPC-H query 1: the items of each status that were shipped by a date, in pieces and money. Money is in
-- cents, discounts and taxes in percent: discounted prices are in hundredths of a cent, with taxes in
-- ten-thousandths.
CREATE STREAM LINEITEM(
  l_orderkey int, l_partkey int, l_suppkey int, l_linenumber int, l_quantity int, l_extendedprice int,
  l_discount int, l_tax int, l_returnflag string, l_linestatus string, l_shipdate date,
  l_commitdate date, l_receiptdate date, l_shipinstruct string, l_shipmode string
)
FROM FILE 'facts/lineitem.tbl' LINE DELIMITED CSV(delimiter := '|');

SELECT l_returnflag, l_linestatus,
  SUM(l_quantity) AS sum_qty,
  SUM(l_extendedprice) AS sum_base_price,
  SUM(l_extendedprice * (100 - l_discount)) AS sum_disc_price,
  SUM(l_extendedprice * (100 - l_discount) * (100 + l_tax)) AS sum_charge,
  AVG(l_quantity) AS avg_qty,
  AVG(l_extendedprice) AS avg_price,
  AVG(l_discount) AS avg_disc,
  COUNT(*) AS count_order
FROM LINEITEM
WHERE l_shipdate <= DATE '1998-09-02'
GROUP BY l_returnflag, l_linestatus
ORDER BY l_returnflag, l_linestatus;
