-- Query 17 of TPC-H for all parts, with a sum instead of an average, as experiments with incremental
-- maintenance use it. The fraction is a parameter: 1 percent, since the rows that are shipped are few.
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

SELECT COALESCE(SUM(l.l_extendedprice), 0) AS price
FROM LINEITEM l, PART
WHERE p_partkey = l.l_partkey
  AND l.l_quantity < 0.01 * (
    SELECT COALESCE(SUM(other.l_quantity), 0) FROM LINEITEM other WHERE other.l_partkey = p_partkey
  );
