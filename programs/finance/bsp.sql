-- Bids in time: for each broker, by how much later bids differ in value from earlier ones.
CREATE STREAM BIDS(t int, id int, broker_id int, volume int, price int)
FROM FILE 'facts/bids.tbl' LINE DELIMITED CSV(delimiter := '|');

SELECT x.broker_id, SUM(x.volume * x.price - y.volume * y.price) AS bsp
FROM BIDS x, BIDS y
WHERE x.broker_id = y.broker_id AND x.t > y.t
GROUP BY x.broker_id;
