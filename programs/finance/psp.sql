-- The price spread of all pairs of a bid and an ask that are large: each more than a ten-thousandth of
-- the volume of its side.
CREATE STREAM BIDS(t int, id int, broker_id int, volume int, price int)
FROM FILE 'facts/bids.tbl' LINE DELIMITED CSV(delimiter := '|');

CREATE STREAM ASKS(t int, id int, broker_id int, volume int, price int)
FROM FILE 'facts/asks.tbl' LINE DELIMITED CSV(delimiter := '|');

SELECT COALESCE(SUM(a.price - b.price), 0) AS psp
FROM BIDS b, ASKS a
WHERE b.volume > 0.0001 * (SELECT COALESCE(SUM(volume), 0) FROM BIDS)
  AND a.volume > 0.0001 * (SELECT COALESCE(SUM(volume), 0) FROM ASKS);
