-- constructs.m3 in the dialect a5.

CREATE STREAM SALES(day date, shop string, amount float, pieces int)
  FROM FILE 'data/sales.events.csv' LINE DELIMITED CSV (delimiter := '|', deletions := 'true');

CREATE TABLE SHOPS(shop string, town string)
  FROM FILE 'data/shops.csv' LINE DELIMITED CSV (delimiter := '|');

DECLARE MAP TOWN(int)[][shop: string, town: string] := 0;

DECLARE MAP BY_TOWN(float)[][town: string] := 0;

DECLARE MAP BY_MONTH(float)[][year: int, month: int] := 0;

DECLARE MAP SELECTED(int)[][] := 0;

DECLARE MAP AMOUNT(float)[][shop: string] := 0;

DECLARE MAP PIECES(int)[][shop: string] := 0;

DECLARE MAP NUMBER(int)[][shop: string] := 0;

DECLARE MAP MEAN(float)[][shop: string] := 0;

DECLARE MAP SHOPS_SEEN(int)[][] := 0;

DECLARE MAP SIZES(int)[][size: int] := 0;

DECLARE MAP STOCK(int)[][shop: string] := 0;

DECLARE QUERY BY_TOWN := BY_TOWN(float)[][town:string];
DECLARE QUERY BY_MONTH := BY_MONTH(float)[][year:int, month:int];
DECLARE QUERY SELECTED := SELECTED(int)[][];
DECLARE QUERY MEAN := MEAN(float)[][shop:string];
DECLARE QUERY SHOPS_SEEN := SHOPS_SEEN(int)[][];
DECLARE QUERY SIZES := SIZES(int)[][size:int];
DECLARE QUERY STOCK := STOCK(int)[][shop:string];
DECLARE QUERY LARGE_SHOPS :=
  AggSum([shop:string],
    PIECES(int)[][shop:string] *
    AggSum([], (value1:int ^= PIECES(int)[][shop:string]) * {value1:int > 10})
  );

ON SYSTEM READY {
  TOWN(int)[][shop:string, town:string] :=
    AggSum([shop:string, town:string], SHOPS(shop:string, town:string));
}

ON + SALES(day:date, shop:string, amount:float, pieces:int) {
  BY_TOWN(float)[][town:string] +=
    AggSum([town:string], TOWN(int)[][shop:string, town:string] * amount:float);
  BY_MONTH(float)[][year:int, month:int] +=
    (year:int ^= [year_part: int](day:date)) *
    (month:int ^= [date_part: int]('month', day:date)) *
    amount:float;
  SELECTED(int)[][] += {shop:string IN ['north', 'south']} * {amount:float >= 2.5};
  AMOUNT(float)[][shop:string] += amount:float;
  PIECES(int)[][shop:string] += pieces:int;
  NUMBER(int)[][shop:string] += 1;
  MEAN(float)[][shop:string] :=
    AggSum([],
      (n:int ^= NUMBER(int)[][shop:string]) * [/: float](n:int) * AMOUNT(float)[][shop:string]
    );
  SHOPS_SEEN(int)[][] := AggSum([], DOMAIN(NUMBER(int)[][s:string]));
  SIZES(int)[][size:int] += (size:int ^= [listmax: int](pieces:int, 3));
  STOCK(int)[][shop:string]:(100) += (-1) * pieces:int;
}

ON - SALES(day:date, shop:string, amount:float, pieces:int) {
  BY_TOWN(float)[][town:string] +=
    AggSum([town:string], TOWN(int)[][shop:string, town:string] * (-1) * amount:float);
  BY_MONTH(float)[][year:int, month:int] +=
    (year:int ^= [year_part: int](day:date)) *
    (month:int ^= [date_part: int]('month', day:date)) *
    (-1) *
    amount:float;
  SELECTED(int)[][] += (-1) * {shop:string IN ['north', 'south']} * {amount:float >= 2.5};
  AMOUNT(float)[][shop:string] += (-1) * amount:float;
  PIECES(int)[][shop:string] += (-1) * pieces:int;
  NUMBER(int)[][shop:string] += -1;
  MEAN(float)[][shop:string] :=
    AggSum([],
      (n:int ^= NUMBER(int)[][shop:string]) * [/: float](n:int) * AMOUNT(float)[][shop:string]
    );
  SHOPS_SEEN(int)[][] := AggSum([], EXISTS(NUMBER(int)[][s:string]));
  SIZES(int)[][size:int] += (-1) * (size:int ^= [listmax: int](pieces:int, 3));
  STOCK(int)[][shop:string]:(100) += pieces:int;
}
