-- TPC-H query 13: how many customers have how many orders without special requests. The left join is
-- written as a query for each customer, which is 0 where there are no orders.
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

SELECT c_count, COUNT(*) AS custdist
FROM (
  SELECT c_custkey, (
    SELECT COUNT(*) FROM ORDERS WHERE o_custkey = c_custkey AND o_comment NOT LIKE '%special%requests%'
  ) AS c_count
  FROM CUSTOMER
) AS c_orders
GROUP BY c_count
ORDER BY custdist DESC, c_count DESC;
