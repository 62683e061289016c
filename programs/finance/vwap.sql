-- What was bid at the highest prices, which together have a quarter of the volume: of each bid, the
-- nested sum is the volume of all bids at higher prices.
CREATE STREAM BIDS(t int, id int, broker_id int, volume int, price int)
FROM FILE 'facts/bids.tbl' LINE DELIMITED CSV(delimiter := '|');

SELECT COALESCE(SUM(b.price * b.volume), 0) AS vwap
FROM BIDS b
WHERE 0.25 * (SELECT COALESCE(SUM(every.volume), 0) FROM BIDS every)
    > (SELECT COALESCE(SUM(higher.volume), 0) FROM BIDS higher WHERE higher.price > b.price);
