-- An order book: for each broker, by how much asks and bids that are far apart differ in value.  Orders come and
-- go.  The same in rules: programs/order_book.dl
CREATE STREAM BIDS(id int, broker int, volume int, price double)
FROM FILE 'facts/bids.tbl' LINE DELIMITED CSV(delimiter := '|');

CREATE STREAM ASKS(id int, broker int, volume int, price double)
FROM FILE 'facts/asks.tbl' LINE DELIMITED CSV(delimiter := '|');

SELECT b.broker, SUM(a.volume * a.price - b.volume * b.price) AS spread, COUNT(*) AS pairs
FROM BIDS b JOIN ASKS a ON a.broker = b.broker
WHERE a.price - b.price > 2 OR b.price - a.price > 2
GROUP BY b.broker;
