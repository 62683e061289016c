-- vwap.m3 in the dialect a5.

CREATE STREAM BIDS(broker int, volume int, price float)
  FROM FILE 'data/bids.events.csv' LINE DELIMITED CSV (delimiter := '|', deletions := 'true');

DECLARE MAP VWAP(float)[][] := 0;

DECLARE MAP TOTAL(int)[][] := AggSum([], BIDS(broker:int, volume:int, price:float) * volume:int);

DECLARE MAP VOLUME(int)[][price: float] :=
  AggSum([price:float], BIDS(broker:int, volume:int, price:float) * volume:int);

DECLARE MAP AMOUNT(float)[][price: float] :=
  AggSum([price:float], BIDS(broker:int, volume:int, price:float) * volume:int * price:float);

DECLARE QUERY VWAP := VWAP(float)[][];

ON + BIDS(broker:int, volume:int, price:float) {
  TOTAL(int)[][] += volume:int;
  VOLUME(int)[][price:float] += volume:int;
  AMOUNT(float)[][price:float] += volume:int * price:float;
  VWAP(float)[][] :=
    AggSum([],
      AMOUNT(float)[][p:float] *
      (above:int ^= AggSum([], VOLUME(int)[][q:float] * {q:float > p:float})) *
      (total:int ^= TOTAL(int)[][]) *
      {(0.25 * total:int) > above:int}
    );
}

ON - BIDS(broker:int, volume:int, price:float) {
  TOTAL(int)[][] += (-1) * volume:int;
  VOLUME(int)[][price:float] += (-1) * volume:int;
  AMOUNT(float)[][price:float] += (-1) * volume:int * price:float;
  VWAP(float)[][] :=
    AggSum([],
      AMOUNT(float)[][p:float] *
      (above:int ^= AggSum([], VOLUME(int)[][q:float] * {q:float > p:float})) *
      (total:int ^= TOTAL(int)[][]) *
      {(0.25 * total:int) > above:int}
    );
}
