-- Mean and number by group, which `dlog m3 --compound` keeps as one element of F-IVM's RingAvg.
CREATE STREAM ORDERS(orderkey int, custkey int, orderdate date, priority int)
FROM FILE 'facts/orders.tbl' LINE DELIMITED CSV(delimiter := '|');

CREATE STREAM LINEITEM(orderkey int, line int, price double, discount double, shipdate date)
FROM FILE 'facts/lineitem.tbl' LINE DELIMITED CSV(delimiter := '|');

SELECT priority, AVG(price) AS mean, COUNT(*) AS lines
FROM ORDERS NATURAL JOIN LINEITEM
GROUP BY priority;
