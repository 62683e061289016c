-- Missed trades: for each broker, by how much all asks and bids at the best prices differ in value. The
-- best prices are those that have a quarter of the volume of their side, as in vwap.sql.
CREATE STREAM BIDS(t int, id int, broker_id int, volume int, price int)
FROM FILE 'facts/bids.tbl' LINE DELIMITED CSV(delimiter := '|');

CREATE STREAM ASKS(t int, id int, broker_id int, volume int, price int)
FROM FILE 'facts/asks.tbl' LINE DELIMITED CSV(delimiter := '|');

SELECT b.broker_id, SUM(a.price * a.volume - b.price * b.volume) AS mst
FROM BIDS b, ASKS a
WHERE 0.25 * (SELECT COALESCE(SUM(every.volume), 0) FROM ASKS every)
    > (SELECT COALESCE(SUM(higher.volume), 0) FROM ASKS higher WHERE higher.price > a.price)
  AND 0.25 * (SELECT COALESCE(SUM(every.volume), 0) FROM BIDS every)
    > (SELECT COALESCE(SUM(higher.volume), 0) FROM BIDS higher WHERE higher.price > b.price)
GROUP BY b.broker_id;
