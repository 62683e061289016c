-- TPC-H query 19: what parts of three kinds brought that were delivered by air in person. Brands, and so
-- on, are parameters. In hundredths of a cent.
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

SELECT COALESCE(SUM(l_extendedprice * (100 - l_discount)), 0) AS revenue
FROM LINEITEM, PART
WHERE (
    p_partkey = l_partkey AND p_brand = 'Brand#12'
    AND p_container IN ('SM CASE', 'SM BOX', 'SM PACK', 'SM PKG')
    AND l_quantity >= 1 AND l_quantity <= 11 AND p_size BETWEEN 1 AND 5
    AND l_shipmode IN ('AIR', 'REG AIR') AND l_shipinstruct = 'DELIVER IN PERSON'
  ) OR (
    p_partkey = l_partkey AND p_brand = 'Brand#23'
    AND p_container IN ('MED BAG', 'MED BOX', 'MED PKG', 'MED PACK')
    AND l_quantity >= 10 AND l_quantity <= 20 AND p_size BETWEEN 1 AND 10
    AND l_shipmode IN ('AIR', 'REG AIR') AND l_shipinstruct = 'DELIVER IN PERSON'
  ) OR (
    p_partkey = l_partkey AND p_brand = 'Brand#33'
    AND p_container IN ('MED CASE', 'SM BOX', 'SM BAG', 'LG PKG')
    AND l_quantity >= 20 AND l_quantity <= 50 AND p_size BETWEEN 1 AND 15
    AND l_shipmode IN ('AIR', 'REG AIR') AND l_shipinstruct = 'DELIVER IN PERSON'
  );
