-- TPC-H query 16: how many suppliers without complaints can supply parts, by brand, type and size.
CREATE STREAM PARTSUPP(ps_partkey int, ps_suppkey int, ps_availqty int, ps_supplycost int)
FROM FILE 'facts/partsupp.tbl' LINE DELIMITED CSV(delimiter := '|');

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

SELECT p_brand, p_type, p_size, COUNT(DISTINCT ps_suppkey) AS supplier_cnt
FROM PARTSUPP, PART
WHERE p_partkey = ps_partkey AND p_brand <> 'Brand#45' AND p_type NOT LIKE 'MEDIUM POLISHED%'
  AND p_size IN (49, 14, 23, 45, 19, 3, 36, 9)
  AND ps_suppkey NOT IN (SELECT s_suppkey FROM SUPPLIER WHERE s_comment LIKE '%Customer%Complaints%')
GROUP BY p_brand, p_type, p_size
ORDER BY supplier_cnt DESC, p_brand, p_type, p_size;
