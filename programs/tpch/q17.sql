-- TPC-H query 17: what orders of less than a fifth of the average quantity of a part bring in a year. The
-- comparison with an average is multiplied by the number of items; the result is in cents.
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

SELECT COALESCE(SUM(l.l_extendedprice), 0) / 7.0 AS avg_yearly
FROM LINEITEM l, PART
WHERE p_partkey = l.l_partkey AND p_brand = 'Brand#23' AND p_container = 'MED BOX'
  AND l.l_quantity * (SELECT COUNT(*) FROM LINEITEM other WHERE other.l_partkey = p_partkey)
    < 0.2 * (SELECT COALESCE(SUM(other.l_quantity), 0) FROM LINEITEM other WHERE other.l_partkey = p_partkey);
