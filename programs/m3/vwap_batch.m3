-- The volume-weighted average price of vwap.m3, in batches; the nested sum stands in the comparison itself.

CREATE STREAM BIDS(broker int, volume int, price double)
  FROM FILE 'data/bids.csv' LINE DELIMITED CSV (delimiter := '|');

DECLARE MAP VWAP(double)[][];
DECLARE MAP TOTAL(long)[][];
DECLARE MAP VOLUME(long)[][price: double];
DECLARE MAP AMOUNT(double)[][price: double];

DECLARE QUERY VWAP := VWAP(double)[][];

ON BATCH UPDATE OF BIDS {
  TOTAL(long)[][] += AggSum([], (DELTA BIDS)(broker, volume, price) * volume);
  VOLUME(long)[][price] += AggSum([price], (DELTA BIDS)(broker, volume, price) * volume);
  AMOUNT(double)[][price] += AggSum([price], (DELTA BIDS)(broker, volume, price) * volume * price);
  VWAP(double)[][] := AggSum([],
    AMOUNT(double)[][p] * {(0.25 * TOTAL(long)[][]) > AggSum([], VOLUME(long)[][q] * {q > p})});
}
