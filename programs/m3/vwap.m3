-- Volume-weighted average price over the top quarter of the volume: a nested aggregate, by lift and comparison.
--   SELECT sum(b.price * b.volume) FROM bids b
--   WHERE 0.25 * (SELECT sum(volume) FROM bids) > (SELECT sum(volume) FROM bids c WHERE c.price > b.price)
-- The nested sum changes for every price when a row comes or goes, so the result is computed anew, over prices.

CREATE STREAM BIDS(broker int, volume int, price double)
  FROM FILE 'data/bids.csv' LINE DELIMITED CSV (delimiter := '|');

DECLARE MAP VWAP(double)[][] := 0;
DECLARE MAP TOTAL(long)[][] := AggSum([], BIDS(broker, volume, price) * volume);
DECLARE MAP VOLUME(long)[][price: double] := AggSum([price], BIDS(broker, volume, price) * volume);
DECLARE MAP AMOUNT(double)[][price: double] := AggSum([price], BIDS(broker, volume, price) * volume * price);

DECLARE QUERY VWAP := VWAP(double)[][];

ON + BIDS(broker, volume, price) {
  TOTAL(long)[][] += volume;
  VOLUME(long)[][price] += volume;
  AMOUNT(double)[][price] += volume * price;
  VWAP(double)[][] := AggSum([],
    AMOUNT(double)[][p] *
    (above ^= AggSum([], VOLUME(long)[][q] * {q > p})) *
    (total ^= TOTAL(long)[][]) *
    {(0.25 * total) > above});
}

ON - BIDS(broker, volume, price) {
  TOTAL(long)[][] += -1 * volume;
  VOLUME(long)[][price] += -1 * volume;
  AMOUNT(double)[][price] += -1 * volume * price;
  VWAP(double)[][] := AggSum([],
    AMOUNT(double)[][p] *
    (above ^= AggSum([], VOLUME(long)[][q] * {q > p})) *
    (total ^= TOTAL(long)[][]) *
    {(0.25 * total) > above});
}
