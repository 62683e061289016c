-- Batches with what only dbtoaster has: `if`, maps without definitions, a map assigned within the batch, longs.

CREATE STREAM SALES(day date, shop string, amount double, pieces int)
  FROM FILE 'data/sales.csv' LINE DELIMITED CSV (delimiter := '|');
CREATE TABLE SHOPS(shop string, town string)
  FROM FILE 'data/shops.csv' LINE DELIMITED CSV (delimiter := '|');

DECLARE MAP TOWN(long)[][shop: string, town: string];
DECLARE MAP DELTA_SHOP(double)[][shop: string];
DECLARE MAP BY_SHOP(double)[][shop: string];
DECLARE MAP BY_TOWN(double)[][town: string];
DECLARE MAP BY_DAY(long)[][day: date, shop: string];
DECLARE MAP TOUCHED(long)[][shop: string];
DECLARE MAP BATCHES(long)[][];
DECLARE MAP BUSY(long)[][];

DECLARE QUERY BY_SHOP := BY_SHOP(double)[][shop];
DECLARE QUERY BY_TOWN := BY_TOWN(double)[][town];
DECLARE QUERY LAST_YEARS := AggSum([shop], BY_DAY(long)[][day, shop] * {day >= DATE('1995-01-01')});
DECLARE QUERY TOUCHED := TOUCHED(long)[][shop];
DECLARE QUERY BUSY := BUSY(long)[][];

ON BATCH UPDATE OF SALES {
  DELTA_SHOP(double)[][shop] := AggSum([shop], (DELTA SALES)(day, shop, amount, pieces) * amount);
  BY_SHOP(double)[][shop] += DELTA_SHOP(double)[][shop];
  BY_TOWN(double)[][town] += AggSum([town], DELTA_SHOP(double)[][shop] * TOWN(long)[][shop, town]);
  BY_DAY(long)[][day, shop] += (DELTA SALES)(day, shop, amount, pieces) * pieces;
  TOUCHED(long)[][shop] := DOMAIN(AggSum([shop], (DELTA SALES)(day, shop, amount, pieces)));
  BATCHES(long)[][] += 1;
  if (AggSum([], EXISTS(BY_SHOP(double)[][shop])) > 2) {
    BUSY(long)[][] += 1L;
  } else {
    BUSY(long)[][] := 0;
  }
}

ON SYSTEM READY {
  TOWN(long)[][shop, town] := AggSum([shop, town], SHOPS(shop, town));
}
