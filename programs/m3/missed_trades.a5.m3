-- missed_trades.m3 in the dialect a5.

CREATE STREAM BIDS(broker int, volume int, price float)
  FROM FILE 'data/bids.events.csv' LINE DELIMITED CSV (delimiter := '|', deletions := 'true');

CREATE STREAM ASKS(broker int, volume int, price float)
  FROM FILE 'data/asks.events.csv' LINE DELIMITED CSV (delimiter := '|', deletions := 'true');

DECLARE MAP MISSED(float)[][broker: int] := 0;

DECLARE MAP BID_VOLUME(int)[][price: float] := 0;

DECLARE MAP BID_COUNT(int)[][broker: int, price: float] := 0;

DECLARE MAP BID_AMOUNT(float)[][broker: int, price: float] := 0;

DECLARE MAP TOP_BID_COUNT(int)[][broker: int] := 0;

DECLARE MAP TOP_BID_AMOUNT(float)[][broker: int] := 0;

DECLARE MAP ASK_VOLUME(int)[][price: float] := 0;

DECLARE MAP ASK_COUNT(int)[][price: float] := 0;

DECLARE MAP ASK_AMOUNT(float)[][price: float] := 0;

DECLARE MAP TOP_ASK_COUNT(int)[][] := 0;

DECLARE MAP TOP_ASK_AMOUNT(float)[][] := 0;

DECLARE QUERY MISSED := MISSED(float)[][broker:int];

ON + BIDS(broker:int, volume:int, price:float) {
  BID_VOLUME(int)[][price:float] += volume:int;
  BID_COUNT(int)[][broker:int, price:float] += 1;
  BID_AMOUNT(float)[][broker:int, price:float] += volume:int * price:float;
  TOP_BID_COUNT(int)[][b:int] :=
    AggSum([b:int],
      BID_COUNT(int)[][b:int, p:float] *
      (total:int ^= AggSum([], BID_VOLUME(int)[][r:float])) *
      (above:int ^= AggSum([], BID_VOLUME(int)[][q:float] * {q:float > p:float})) *
      {(0.25 * total:int) > above:int}
    );
  TOP_BID_AMOUNT(float)[][b:int] :=
    AggSum([b:int],
      BID_AMOUNT(float)[][b:int, p:float] *
      (total:int ^= AggSum([], BID_VOLUME(int)[][r:float])) *
      (above:int ^= AggSum([], BID_VOLUME(int)[][q:float] * {q:float > p:float})) *
      {(0.25 * total:int) > above:int}
    );
  MISSED(float)[][b:int] :=
    AggSum([b:int],
      (TOP_BID_COUNT(int)[][b:int] * TOP_ASK_AMOUNT(float)[][]) +
      ((-1) * TOP_BID_AMOUNT(float)[][b:int] * TOP_ASK_COUNT(int)[][])
    );
}

ON - BIDS(broker:int, volume:int, price:float) {
  BID_VOLUME(int)[][price:float] += (-1) * volume:int;
  BID_COUNT(int)[][broker:int, price:float] += -1;
  BID_AMOUNT(float)[][broker:int, price:float] += (-1) * volume:int * price:float;
  TOP_BID_COUNT(int)[][b:int] :=
    AggSum([b:int],
      BID_COUNT(int)[][b:int, p:float] *
      (total:int ^= AggSum([], BID_VOLUME(int)[][r:float])) *
      (above:int ^= AggSum([], BID_VOLUME(int)[][q:float] * {q:float > p:float})) *
      {(0.25 * total:int) > above:int}
    );
  TOP_BID_AMOUNT(float)[][b:int] :=
    AggSum([b:int],
      BID_AMOUNT(float)[][b:int, p:float] *
      (total:int ^= AggSum([], BID_VOLUME(int)[][r:float])) *
      (above:int ^= AggSum([], BID_VOLUME(int)[][q:float] * {q:float > p:float})) *
      {(0.25 * total:int) > above:int}
    );
  MISSED(float)[][b:int] :=
    AggSum([b:int],
      (TOP_BID_COUNT(int)[][b:int] * TOP_ASK_AMOUNT(float)[][]) +
      ((-1) * TOP_BID_AMOUNT(float)[][b:int] * TOP_ASK_COUNT(int)[][])
    );
}

ON + ASKS(broker:int, volume:int, price:float) {
  ASK_VOLUME(int)[][price:float] += volume:int;
  ASK_COUNT(int)[][price:float] += 1;
  ASK_AMOUNT(float)[][price:float] += volume:int * price:float;
  TOP_ASK_COUNT(int)[][] :=
    AggSum([],
      ASK_COUNT(int)[][p:float] *
      (total:int ^= AggSum([], ASK_VOLUME(int)[][r:float])) *
      (above:int ^= AggSum([], ASK_VOLUME(int)[][q:float] * {q:float > p:float})) *
      {(0.25 * total:int) > above:int}
    );
  TOP_ASK_AMOUNT(float)[][] :=
    AggSum([],
      ASK_AMOUNT(float)[][p:float] *
      (total:int ^= AggSum([], ASK_VOLUME(int)[][r:float])) *
      (above:int ^= AggSum([], ASK_VOLUME(int)[][q:float] * {q:float > p:float})) *
      {(0.25 * total:int) > above:int}
    );
  MISSED(float)[][b:int] :=
    AggSum([b:int],
      (TOP_BID_COUNT(int)[][b:int] * TOP_ASK_AMOUNT(float)[][]) +
      ((-1) * TOP_BID_AMOUNT(float)[][b:int] * TOP_ASK_COUNT(int)[][])
    );
}

ON - ASKS(broker:int, volume:int, price:float) {
  ASK_VOLUME(int)[][price:float] += (-1) * volume:int;
  ASK_COUNT(int)[][price:float] += -1;
  ASK_AMOUNT(float)[][price:float] += (-1) * volume:int * price:float;
  TOP_ASK_COUNT(int)[][] :=
    AggSum([],
      ASK_COUNT(int)[][p:float] *
      (total:int ^= AggSum([], ASK_VOLUME(int)[][r:float])) *
      (above:int ^= AggSum([], ASK_VOLUME(int)[][q:float] * {q:float > p:float})) *
      {(0.25 * total:int) > above:int}
    );
  TOP_ASK_AMOUNT(float)[][] :=
    AggSum([],
      ASK_AMOUNT(float)[][p:float] *
      (total:int ^= AggSum([], ASK_VOLUME(int)[][r:float])) *
      (above:int ^= AggSum([], ASK_VOLUME(int)[][q:float] * {q:float > p:float})) *
      {(0.25 * total:int) > above:int}
    );
  MISSED(float)[][b:int] :=
    AggSum([b:int],
      (TOP_BID_COUNT(int)[][b:int] * TOP_ASK_AMOUNT(float)[][]) +
      ((-1) * TOP_BID_AMOUNT(float)[][b:int] * TOP_ASK_COUNT(int)[][])
    );
}
