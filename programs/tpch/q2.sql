-- TPC-H query 2: the suppliers in Europe that are cheapest for a part of one size and metal. The minimum
-- of costs is written as <= ALL; the first 100 rows become all.
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

CREATE STREAM PARTSUPP(ps_partkey int, ps_suppkey int, ps_availqty int, ps_supplycost int)
FROM FILE 'facts/partsupp.tbl' LINE DELIMITED CSV(delimiter := '|');

CREATE TABLE NATION(n_nationkey int, n_name string, n_regionkey int)
FROM FILE 'facts/nation.tbl' LINE DELIMITED CSV(delimiter := '|');

CREATE TABLE REGION(r_regionkey int, r_name string)
FROM FILE 'facts/region.tbl' LINE DELIMITED CSV(delimiter := '|');

SELECT DISTINCT s_acctbal, s_name, n_name, p_partkey, p_mfgr, s_address, s_phone, s_comment
FROM PART, SUPPLIER, PARTSUPP, NATION, REGION
WHERE p_partkey = ps_partkey AND s_suppkey = ps_suppkey
  AND p_size = 15 AND p_type LIKE '%BRASS'
  AND s_nationkey = n_nationkey AND n_regionkey = r_regionkey AND r_name = 'EUROPE'
  AND ps_supplycost <= ALL (
    SELECT cheaper.ps_supplycost
    FROM PARTSUPP cheaper, SUPPLIER other, NATION home, REGION around
    WHERE cheaper.ps_partkey = p_partkey AND other.s_suppkey = cheaper.ps_suppkey
      AND other.s_nationkey = home.n_nationkey AND home.n_regionkey = around.r_regionkey
      AND around.r_name = 'EUROPE'
  )
ORDER BY s_acctbal DESC, n_name, s_name, p_partkey;
