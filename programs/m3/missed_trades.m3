-- What each broker missed: bids against asks, both within the top quarter of their side's volume.
--   SELECT b.broker, sum(a.price * a.volume - b.price * b.volume) FROM bids b, asks a
--   WHERE 0.25 * (SELECT sum(volume) FROM asks) > (SELECT sum(volume) FROM asks c WHERE c.price > a.price)
--     AND 0.25 * (SELECT sum(volume) FROM bids) > (SELECT sum(volume) FROM bids c WHERE c.price > b.price)
--   GROUP BY b.broker

CREATE STREAM BIDS(broker int, volume int, price double)
  FROM FILE 'data/bids.csv' LINE DELIMITED CSV (delimiter := '|');
CREATE STREAM ASKS(broker int, volume int, price double)
  FROM FILE 'data/asks.csv' LINE DELIMITED CSV (delimiter := '|');

DECLARE MAP MISSED(double)[][broker: int];
DECLARE MAP BID_VOLUME(long)[][price: double];
DECLARE MAP BID_COUNT(long)[][broker: int, price: double];
DECLARE MAP BID_AMOUNT(double)[][broker: int, price: double];
DECLARE MAP TOP_BID_COUNT(long)[][broker: int];
DECLARE MAP TOP_BID_AMOUNT(double)[][broker: int];
DECLARE MAP ASK_VOLUME(long)[][price: double];
DECLARE MAP ASK_COUNT(long)[][price: double];
DECLARE MAP ASK_AMOUNT(double)[][price: double];
DECLARE MAP TOP_ASK_COUNT(long)[][];
DECLARE MAP TOP_ASK_AMOUNT(double)[][];

DECLARE QUERY MISSED := MISSED(double)[][broker];

ON + BIDS(broker, volume, price) {
  BID_VOLUME(long)[][price] += volume;
  BID_COUNT(long)[][broker, price] += 1;
  BID_AMOUNT(double)[][broker, price] += volume * price;
  TOP_BID_COUNT(long)[][b] := AggSum([b],
    BID_COUNT(long)[][b, p] *
    (total ^= AggSum([], BID_VOLUME(long)[][r])) *
    (above ^= AggSum([], BID_VOLUME(long)[][q] * {q > p})) * {(0.25 * total) > above});
  TOP_BID_AMOUNT(double)[][b] := AggSum([b],
    BID_AMOUNT(double)[][b, p] *
    (total ^= AggSum([], BID_VOLUME(long)[][r])) *
    (above ^= AggSum([], BID_VOLUME(long)[][q] * {q > p})) * {(0.25 * total) > above});
  MISSED(double)[][b] := AggSum([b],
    (TOP_BID_COUNT(long)[][b] * TOP_ASK_AMOUNT(double)[][]) +
    (-1 * TOP_BID_AMOUNT(double)[][b] * TOP_ASK_COUNT(long)[][]));
}

ON - BIDS(broker, volume, price) {
  BID_VOLUME(long)[][price] += -1 * volume;
  BID_COUNT(long)[][broker, price] += -1;
  BID_AMOUNT(double)[][broker, price] += -1 * volume * price;
  TOP_BID_COUNT(long)[][b] := AggSum([b],
    BID_COUNT(long)[][b, p] *
    (total ^= AggSum([], BID_VOLUME(long)[][r])) *
    (above ^= AggSum([], BID_VOLUME(long)[][q] * {q > p})) * {(0.25 * total) > above});
  TOP_BID_AMOUNT(double)[][b] := AggSum([b],
    BID_AMOUNT(double)[][b, p] *
    (total ^= AggSum([], BID_VOLUME(long)[][r])) *
    (above ^= AggSum([], BID_VOLUME(long)[][q] * {q > p})) * {(0.25 * total) > above});
  MISSED(double)[][b] := AggSum([b],
    (TOP_BID_COUNT(long)[][b] * TOP_ASK_AMOUNT(double)[][]) +
    (-1 * TOP_BID_AMOUNT(double)[][b] * TOP_ASK_COUNT(long)[][]));
}

ON + ASKS(broker, volume, price) {
  ASK_VOLUME(long)[][price] += volume;
  ASK_COUNT(long)[][price] += 1;
  ASK_AMOUNT(double)[][price] += volume * price;
  TOP_ASK_COUNT(long)[][] := AggSum([],
    ASK_COUNT(long)[][p] *
    (total ^= AggSum([], ASK_VOLUME(long)[][r])) *
    (above ^= AggSum([], ASK_VOLUME(long)[][q] * {q > p})) * {(0.25 * total) > above});
  TOP_ASK_AMOUNT(double)[][] := AggSum([],
    ASK_AMOUNT(double)[][p] *
    (total ^= AggSum([], ASK_VOLUME(long)[][r])) *
    (above ^= AggSum([], ASK_VOLUME(long)[][q] * {q > p})) * {(0.25 * total) > above});
  MISSED(double)[][b] := AggSum([b],
    (TOP_BID_COUNT(long)[][b] * TOP_ASK_AMOUNT(double)[][]) +
    (-1 * TOP_BID_AMOUNT(double)[][b] * TOP_ASK_COUNT(long)[][]));
}

ON - ASKS(broker, volume, price) {
  ASK_VOLUME(long)[][price] += -1 * volume;
  ASK_COUNT(long)[][price] += -1;
  ASK_AMOUNT(double)[][price] += -1 * volume * price;
  TOP_ASK_COUNT(long)[][] := AggSum([],
    ASK_COUNT(long)[][p] *
    (total ^= AggSum([], ASK_VOLUME(long)[][r])) *
    (above ^= AggSum([], ASK_VOLUME(long)[][q] * {q > p})) * {(0.25 * total) > above});
  TOP_ASK_AMOUNT(double)[][] := AggSum([],
    ASK_AMOUNT(double)[][p] *
    (total ^= AggSum([], ASK_VOLUME(long)[][r])) *
    (above ^= AggSum([], ASK_VOLUME(long)[][q] * {q > p})) * {(0.25 * total) > above});
  MISSED(double)[][b] := AggSum([b],
    (TOP_BID_COUNT(long)[][b] * TOP_ASK_AMOUNT(double)[][]) +
    (-1 * TOP_BID_AMOUNT(double)[][b] * TOP_ASK_COUNT(long)[][]));
}
