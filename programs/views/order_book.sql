-- An order book: for each broker, what its asks would cost against its bids at higher prices.

CREATE STREAM BIDS(bid int, broker int, bid_volume int, bid_price int)
  FROM FILE 'data/bids.csv' LINE DELIMITED CSV (delimiter := '|');
CREATE STREAM ASKS(ask int, broker int, ask_volume int, ask_price int)
  FROM FILE 'data/asks.csv' LINE DELIMITED CSV (delimiter := '|');

SELECT broker, SUM(bid_volume * bid_price - ask_volume * ask_price), COUNT(*)
FROM BIDS NATURAL JOIN ASKS
WHERE ask_price < bid_price GROUP BY broker;
