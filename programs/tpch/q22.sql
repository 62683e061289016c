-- TPC-H query 22: by country code, the customers of seven countries without orders whose balance is above
-- the average of those above 0. The comparison with the average is multiplied by the number of customers;
-- balances are in cents.
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

SELECT cntrycode, COUNT(*) AS numcust, SUM(c_acctbal) AS totacctbal
FROM (
  SELECT SUBSTRING(c_phone FROM 1 FOR 2) AS cntrycode, c_acctbal
  FROM CUSTOMER
  WHERE SUBSTRING(c_phone FROM 1 FOR 2) IN ('13', '31', '23', '29', '30', '18', '17')
    AND c_acctbal * (
        SELECT COUNT(*) FROM CUSTOMER other
        WHERE other.c_acctbal > 0
          AND SUBSTRING(other.c_phone FROM 1 FOR 2) IN ('13', '31', '23', '29', '30', '18', '17')
      ) > (
        SELECT COALESCE(SUM(other.c_acctbal), 0) FROM CUSTOMER other
        WHERE other.c_acctbal > 0
          AND SUBSTRING(other.c_phone FROM 1 FOR 2) IN ('13', '31', '23', '29', '30', '18', '17')
      )
    AND NOT EXISTS (SELECT * FROM ORDERS WHERE o_custkey = c_custkey)
) AS custsale
GROUP BY cntrycode
ORDER BY cntrycode;
