-- Every construct once: a table read when the system is ready, texts and dates as keys, functions, IN, EXISTS and
-- DOMAIN, lifts of values and of aggregates, division, and an initial value.

CREATE STREAM SALES(day date, shop string, amount double, pieces int)
  FROM FILE 'data/sales.csv' LINE DELIMITED CSV (delimiter := '|');
CREATE TABLE SHOPS(shop string, town string)
  FROM FILE 'data/shops.csv' LINE DELIMITED CSV (delimiter := '|');

DECLARE MAP TOWN(long)[][shop: string, town: string] := 0;
DECLARE MAP BY_TOWN(double)[][town: string] := 0;
DECLARE MAP BY_MONTH(double)[][year: int, month: int] := 0;
DECLARE MAP SELECTED(long)[][] := 0;
DECLARE MAP AMOUNT(double)[][shop: string] := 0;
DECLARE MAP PIECES(long)[][shop: string] := 0;
DECLARE MAP NUMBER(long)[][shop: string] := 0;
DECLARE MAP MEAN(double)[][shop: string] := 0;
DECLARE MAP SHOPS_SEEN(long)[][] := 0;
DECLARE MAP SIZES(long)[][size: int] := 0;
DECLARE MAP STOCK(long)[][shop: string] := 0;

DECLARE QUERY BY_TOWN := BY_TOWN(double)[][town];
DECLARE QUERY BY_MONTH := BY_MONTH(double)[][year, month];
DECLARE QUERY SELECTED := SELECTED(long)[][];
DECLARE QUERY MEAN := MEAN(double)[][shop];
DECLARE QUERY SHOPS_SEEN := SHOPS_SEEN(long)[][];
DECLARE QUERY SIZES := SIZES(long)[][size];
DECLARE QUERY STOCK := STOCK(long)[][shop];
DECLARE QUERY LARGE_SHOPS := AggSum([shop], PIECES(long)[][shop] * {PIECES(long)[][shop] > 10});

ON SYSTEM READY {
  TOWN(long)[][shop, town] := AggSum([shop, town], SHOPS(shop, town));
}

ON + SALES(day, shop, amount, pieces) {
  BY_TOWN(double)[][town] += AggSum([town], TOWN(long)[][shop, town] * amount);
  BY_MONTH(double)[][year, month] +=
    (year ^= [year_part: int](day)) * (month ^= [date_part: int]('month', day)) * amount;
  SELECTED(long)[][] += {shop IN ['north', 'south']} * {amount >= 2.5};
  AMOUNT(double)[][shop] += amount;
  PIECES(long)[][shop] += pieces;
  NUMBER(long)[][shop] += 1;
  MEAN(double)[][shop] := (n ^= NUMBER(long)[][shop]) * [/: double](n) * AMOUNT(double)[][shop];
  SHOPS_SEEN(long)[][] := AggSum([], DOMAIN(NUMBER(long)[][s]));
  SIZES(long)[][size] += (size ^= [listmax: int](pieces, 3));
  STOCK(long)[][shop]:(100) += -1 * pieces;
}

ON - SALES(day, shop, amount, pieces) {
  BY_TOWN(double)[][town] += AggSum([town], TOWN(long)[][shop, town] * -1 * amount);
  BY_MONTH(double)[][year, month] +=
    (year ^= [year_part: int](day)) * (month ^= [date_part: int]('month', day)) * -1 * amount;
  SELECTED(long)[][] += -1 * {shop IN ['north', 'south']} * {amount >= 2.5};
  AMOUNT(double)[][shop] += -1 * amount;
  PIECES(long)[][shop] += -1 * pieces;
  NUMBER(long)[][shop] += -1;
  MEAN(double)[][shop] := (n ^= NUMBER(long)[][shop]) * [/: double](n) * AMOUNT(double)[][shop];
  SHOPS_SEEN(long)[][] := AggSum([], EXISTS(NUMBER(long)[][s]));
  SIZES(long)[][size] += -1 * (size ^= [listmax: int](pieces, 3));
  STOCK(long)[][shop]:(100) += pieces;
}
