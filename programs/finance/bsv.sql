-- Half the square of what a broker's bids are worth, written as a join of bids with bids. Results soon
-- pass 64 bits, so volumes and prices are doubles.
CREATE STREAM BIDS(t int, id int, broker_id int, volume double, price double)
FROM FILE 'facts/bids.tbl' LINE DELIMITED CSV(delimiter := '|');

SELECT x.broker_id, SUM(0.5 * x.volume * x.price * y.volume * y.price) AS bsv
FROM BIDS x, BIDS y
WHERE x.broker_id = y.broker_id
GROUP BY x.broker_id;
