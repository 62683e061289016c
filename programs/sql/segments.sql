-- What each market segment bought in 1995, over the relations of open_orders.sql.
CREATE STREAM CUSTOMER(custkey int, segment varchar(10))
FROM FILE 'facts/customer.tbl' LINE DELIMITED CSV(delimiter := '|');

CREATE STREAM ORDERS(orderkey int, custkey int, orderdate date, priority int)
FROM FILE 'facts/orders.tbl' LINE DELIMITED CSV(delimiter := '|');

CREATE STREAM LINEITEM(orderkey int, line int, price double, discount double, shipdate date)
FROM FILE 'facts/lineitem.tbl' LINE DELIMITED CSV(delimiter := '|');

SELECT segment, SUM(price * (1 - discount)) AS revenue, COUNT(*) AS lines, AVG(discount) AS discount_mean,
  SUM(CASE WHEN priority = 1 THEN 1 ELSE 0 END) AS urgent
FROM CUSTOMER NATURAL JOIN ORDERS NATURAL JOIN LINEITEM
WHERE EXTRACT(YEAR FROM orderdate) = 1995
GROUP BY segment;
