-- Finding the axes of brokers: for each broker, by how much asks and bids differ in volume that are too
-- far apart in price to trade.
CREATE STREAM BIDS(t int, id int, broker_id int, volume int, price int)
FROM FILE 'facts/bids.tbl' LINE DELIMITED CSV(delimiter := '|');

CREATE STREAM ASKS(t int, id int, broker_id int, volume int, price int)
FROM FILE 'facts/asks.tbl' LINE DELIMITED CSV(delimiter := '|');

SELECT b.broker_id, SUM(a.volume - b.volume) AS axf
FROM BIDS b, ASKS a
WHERE b.broker_id = a.broker_id AND (a.price - b.price > 1000 OR b.price - a.price > 1000)
GROUP BY b.broker_id;
