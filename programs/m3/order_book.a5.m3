-- order_book.m3 in the dialect a5.

CREATE STREAM BIDS(broker int, volume int, price float)
  FROM FILE 'data/bids.events.csv' LINE DELIMITED CSV (delimiter := '|', deletions := 'true');

CREATE STREAM ASKS(broker int, volume int, price float)
  FROM FILE 'data/asks.events.csv' LINE DELIMITED CSV (delimiter := '|', deletions := 'true');

DECLARE MAP LEVELS(int)[][] := 0;

DECLARE MAP DEPTH(int)[][price: float] := 0;

DECLARE MAP FAR(int)[][broker: int] := 0;

DECLARE MAP BID_COUNT(int)[][broker: int, price: float] := 0;

DECLARE MAP BID_VOLUME(int)[][broker: int, price: float] := 0;

DECLARE MAP ASK_COUNT(int)[][broker: int, price: float] := 0;

DECLARE MAP ASK_VOLUME(int)[][broker: int, price: float] := 0;

DECLARE QUERY LEVELS := LEVELS(int)[][];
DECLARE QUERY FAR := FAR(int)[][broker:int];

ON + BIDS(broker:int, volume:int, price:float) {
  LEVELS(int)[][] += 1 + ((-1) * EXISTS(DEPTH(int)[][price:float]));
  DEPTH(int)[][price:float] += 1;
  FAR(int)[][broker:int] +=
    AggSum([broker:int],
      (ASK_VOLUME(int)[][broker:int, p:float] +
       ((-1) * ASK_COUNT(int)[][broker:int, p:float] * volume:int)) *
      ({(p:float + ((-1) * price:float)) > 2} + {(price:float + ((-1) * p:float)) > 2})
    );
  BID_COUNT(int)[][broker:int, price:float] += 1;
  BID_VOLUME(int)[][broker:int, price:float] += volume:int;
}

ON - BIDS(broker:int, volume:int, price:float) {
  DEPTH(int)[][price:float] += -1;
  LEVELS(int)[][] += (-1) + EXISTS(DEPTH(int)[][price:float]);
  FAR(int)[][broker:int] +=
    AggSum([broker:int],
      (-1) *
      (ASK_VOLUME(int)[][broker:int, p:float] +
       ((-1) * ASK_COUNT(int)[][broker:int, p:float] * volume:int)) *
      ({(p:float + ((-1) * price:float)) > 2} + {(price:float + ((-1) * p:float)) > 2})
    );
  BID_COUNT(int)[][broker:int, price:float] += -1;
  BID_VOLUME(int)[][broker:int, price:float] += (-1) * volume:int;
}

ON + ASKS(broker:int, volume:int, price:float) {
  FAR(int)[][broker:int] +=
    AggSum([broker:int],
      ((BID_COUNT(int)[][broker:int, p:float] * volume:int) +
       ((-1) * BID_VOLUME(int)[][broker:int, p:float])) *
      ({(p:float + ((-1) * price:float)) > 2} + {(price:float + ((-1) * p:float)) > 2})
    );
  ASK_COUNT(int)[][broker:int, price:float] += 1;
  ASK_VOLUME(int)[][broker:int, price:float] += volume:int;
}

ON - ASKS(broker:int, volume:int, price:float) {
  FAR(int)[][broker:int] +=
    AggSum([broker:int],
      (-1) *
      ((BID_COUNT(int)[][broker:int, p:float] * volume:int) +
       ((-1) * BID_VOLUME(int)[][broker:int, p:float])) *
      ({(p:float + ((-1) * price:float)) > 2} + {(price:float + ((-1) * p:float)) > 2})
    );
  ASK_COUNT(int)[][broker:int, price:float] += -1;
  ASK_VOLUME(int)[][broker:int, price:float] += (-1) * volume:int;
}
