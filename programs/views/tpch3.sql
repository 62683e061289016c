-- Revenue of open orders, by order, as in the third query of TPC-H: prices in cents, discounts in percent.

CREATE STREAM CUSTOMER(custkey int, segment string)
  FROM FILE 'data/customer.csv' LINE DELIMITED CSV (delimiter := '|');
CREATE STREAM ORDERS(orderkey int, custkey int, orderdate date, priority int)
  FROM FILE 'data/orders.csv' LINE DELIMITED CSV (delimiter := '|');
CREATE STREAM LINEITEM(orderkey int, line int, price int, discount int, shipdate date)
  FROM FILE 'data/lineitem.csv' LINE DELIMITED CSV (delimiter := '|');

SELECT orderkey, priority, SUM(price * (100 - discount))
FROM CUSTOMER NATURAL JOIN ORDERS NATURAL JOIN LINEITEM
WHERE segment = 'BUILDING' AND orderdate < DATE('1995-03-15') AND shipdate > DATE('1995-03-15')
GROUP BY orderkey, priority;
