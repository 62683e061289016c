-- An order book: how many price levels the bids have, and for each broker by how much volumes of asks exceed
-- those of bids, over pairs whose prices are more than 2 apart.
--   SELECT count(DISTINCT price) FROM bids
--   SELECT b.broker, sum(a.volume - b.volume) FROM bids b, asks a
--   WHERE a.broker = b.broker AND (a.price - b.price > 2 OR b.price - a.price > 2) GROUP BY b.broker

CREATE STREAM BIDS(broker int, volume int, price double)
  FROM FILE 'data/bids.csv' LINE DELIMITED CSV (delimiter := '|');
CREATE STREAM ASKS(broker int, volume int, price double)
  FROM FILE 'data/asks.csv' LINE DELIMITED CSV (delimiter := '|');

DECLARE MAP LEVELS(long)[][];
DECLARE MAP DEPTH(long)[][price: double];
DECLARE MAP FAR(long)[][broker: int];
DECLARE MAP BID_COUNT(long)[][broker: int, price: double];
DECLARE MAP BID_VOLUME(long)[][broker: int, price: double];
DECLARE MAP ASK_COUNT(long)[][broker: int, price: double];
DECLARE MAP ASK_VOLUME(long)[][broker: int, price: double];

DECLARE QUERY LEVELS := LEVELS(long)[][];
DECLARE QUERY FAR := FAR(long)[][broker];

ON + BIDS(broker, volume, price) {
  LEVELS(long)[][] += 1 + (-1 * EXISTS(DEPTH(long)[][price]));
  DEPTH(long)[][price] += 1;
  FAR(long)[][broker] += AggSum([broker],
    (ASK_VOLUME(long)[][broker, p] + (-1 * ASK_COUNT(long)[][broker, p] * volume)) *
    ({(p + (-1 * price)) > 2} + {(price + (-1 * p)) > 2}));
  BID_COUNT(long)[][broker, price] += 1;
  BID_VOLUME(long)[][broker, price] += volume;
}

ON - BIDS(broker, volume, price) {
  DEPTH(long)[][price] += -1;
  LEVELS(long)[][] += -1 + EXISTS(DEPTH(long)[][price]);
  FAR(long)[][broker] += AggSum([broker], -1 *
    (ASK_VOLUME(long)[][broker, p] + (-1 * ASK_COUNT(long)[][broker, p] * volume)) *
    ({(p + (-1 * price)) > 2} + {(price + (-1 * p)) > 2}));
  BID_COUNT(long)[][broker, price] += -1;
  BID_VOLUME(long)[][broker, price] += -1 * volume;
}

ON + ASKS(broker, volume, price) {
  FAR(long)[][broker] += AggSum([broker],
    ((BID_COUNT(long)[][broker, p] * volume) + (-1 * BID_VOLUME(long)[][broker, p])) *
    ({(p + (-1 * price)) > 2} + {(price + (-1 * p)) > 2}));
  ASK_COUNT(long)[][broker, price] += 1;
  ASK_VOLUME(long)[][broker, price] += volume;
}

ON - ASKS(broker, volume, price) {
  FAR(long)[][broker] += AggSum([broker], -1 *
    ((BID_COUNT(long)[][broker, p] * volume) + (-1 * BID_VOLUME(long)[][broker, p])) *
    ({(p + (-1 * price)) > 2} + {(price + (-1 * p)) > 2}));
  ASK_COUNT(long)[][broker, price] += -1;
  ASK_VOLUME(long)[][broker, price] += -1 * volume;
}
