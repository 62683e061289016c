-- The shape of TPC-H's query 3: what orders of one market segment that are not shipped by a date come to.
-- The same in rules: programs/open_orders.dl
CREATE STREAM CUSTOMER(custkey int, segment varchar(10))
FROM FILE 'facts/customer.tbl' LINE DELIMITED CSV(delimiter := '|');

CREATE STREAM ORDERS(orderkey int, custkey int, orderdate date, priority int)
FROM FILE 'facts/orders.tbl' LINE DELIMITED CSV(delimiter := '|');

CREATE STREAM LINEITEM(orderkey int, line int, price double, discount double, shipdate date)
FROM FILE 'facts/lineitem.tbl' LINE DELIMITED CSV(delimiter := '|');

SELECT o.orderkey, o.orderdate, o.priority, SUM(l.price * (1 - l.discount)) AS revenue
FROM CUSTOMER c, ORDERS o, LINEITEM l
WHERE c.segment = 'BUILDING' AND c.custkey = o.custkey AND l.orderkey = o.orderkey
  AND o.orderdate < DATE '1995-03-15' AND l.shipdate > DATE '1995-03-15'
GROUP BY o.orderkey, o.orderdate, o.priority;
