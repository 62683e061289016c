-- Input variables, which only a5 has: the volume above a price is stored for every price that was read, and
-- computed from VOLUME when a price is first read.  `*` and `+` have the same precedence in a5: hence the
-- parentheses.

CREATE STREAM BIDS(BROKER int, VOLUME int, PRICE float)
  FROM FILE 'data/bids.events.csv' LINE DELIMITED CSV (delimiter := '|', deletions := 'true');

DECLARE MAP VOLUME(int)[][P:float] := AggSum([P:float], BIDS(BROKER:int, V:int, P:float) * V:int);
DECLARE MAP ABOVE(int)[Q:float][] := AggSum([], BIDS(BROKER:int, V:int, P:float) * V:int * {P:float > Q:float});
DECLARE MAP SEEN(int)[][P:float] := 0;
DECLARE MAP DIFFERENCE(int)[][] := 0;

DECLARE QUERY ABOVE_TEN := (Q:float ^= 10.5) * ABOVE(int)[Q:float][]:(
  AggSum([], VOLUME(int)[][P:float] * {P:float > Q:float}));
DECLARE QUERY DIFFERENCE := DIFFERENCE(int)[][];

ON + BIDS(BROKER:int, V:int, P:float) {
  VOLUME(int)[][P:float] += V:int;
  ABOVE(int)[Q:float][] += V:int * {P:float > Q:float};
  SEEN(int)[][P:float] += ABOVE(int)[P:float][]:(AggSum([], VOLUME(int)[][R:float] * {R:float > P:float}));
  DIFFERENCE(int)[][] += (V:int * (2 - 1)) - BROKER:int;
}

ON - BIDS(BROKER:int, V:int, P:float) {
  ABOVE(int)[Q:float][] += - (V:int * {P:float > Q:float});
  DIFFERENCE(int)[][] += - (V:int - BROKER:int);
  VOLUME(int)[][P:float] += - V:int;
}
