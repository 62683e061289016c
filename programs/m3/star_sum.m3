-- A sum over a star join of six relations, in batches: one map per relation, and the product of the others.
--   SELECT sum(house.price * shop.sales) FROM house NATURAL JOIN shop NATURAL JOIN school
--     NATURAL JOIN cafe NATURAL JOIN people NATURAL JOIN bus

CREATE STREAM HOUSE(postcode int, price int) FROM FILE 'data/house.csv' LINE DELIMITED CSV (delimiter := '|');
CREATE STREAM SHOP(postcode int, sales int) FROM FILE 'data/shop.csv' LINE DELIMITED CSV (delimiter := '|');
CREATE STREAM SCHOOL(postcode int, kind int) FROM FILE 'data/school.csv' LINE DELIMITED CSV (delimiter := '|');
CREATE STREAM CAFE(postcode int, seats int) FROM FILE 'data/cafe.csv' LINE DELIMITED CSV (delimiter := '|');
CREATE STREAM PEOPLE(postcode int, age int) FROM FILE 'data/people.csv' LINE DELIMITED CSV (delimiter := '|');
CREATE STREAM BUS(postcode int, line int) FROM FILE 'data/bus.csv' LINE DELIMITED CSV (delimiter := '|');

DECLARE MAP SUMS(long)[][] :=
  AggSum([],
    HOUSE(postcode, price) * SHOP(postcode, sales) * SCHOOL(postcode, kind) * CAFE(postcode, seats) *
    PEOPLE(postcode, age) * BUS(postcode, line) * price * sales);
DECLARE MAP V_HOUSE(long)[][postcode: int] := AggSum([postcode], HOUSE(postcode, price) * price);
DECLARE MAP V_SHOP(long)[][postcode: int] := AggSum([postcode], SHOP(postcode, sales) * sales);
DECLARE MAP V_SCHOOL(long)[][postcode: int] := AggSum([postcode], SCHOOL(postcode, kind));
DECLARE MAP V_CAFE(long)[][postcode: int] := AggSum([postcode], CAFE(postcode, seats));
DECLARE MAP V_PEOPLE(long)[][postcode: int] := AggSum([postcode], PEOPLE(postcode, age));
DECLARE MAP V_BUS(long)[][postcode: int] := AggSum([postcode], BUS(postcode, line));

DECLARE QUERY SUMS := SUMS(long)[][];

ON BATCH UPDATE OF HOUSE {
  SUMS(long)[][] += AggSum([], (DELTA HOUSE)(postcode, price) * price *
    V_SHOP(long)[][postcode] * V_SCHOOL(long)[][postcode] * V_CAFE(long)[][postcode] *
    V_PEOPLE(long)[][postcode] * V_BUS(long)[][postcode]);
  V_HOUSE(long)[][postcode] += AggSum([postcode], (DELTA HOUSE)(postcode, price) * price);
}

ON BATCH UPDATE OF SHOP {
  SUMS(long)[][] += AggSum([], (DELTA SHOP)(postcode, sales) * sales *
    V_HOUSE(long)[][postcode] * V_SCHOOL(long)[][postcode] * V_CAFE(long)[][postcode] *
    V_PEOPLE(long)[][postcode] * V_BUS(long)[][postcode]);
  V_SHOP(long)[][postcode] += AggSum([postcode], (DELTA SHOP)(postcode, sales) * sales);
}

ON BATCH UPDATE OF SCHOOL {
  SUMS(long)[][] += AggSum([], (DELTA SCHOOL)(postcode, kind) *
    V_HOUSE(long)[][postcode] * V_SHOP(long)[][postcode] * V_CAFE(long)[][postcode] *
    V_PEOPLE(long)[][postcode] * V_BUS(long)[][postcode]);
  V_SCHOOL(long)[][postcode] += AggSum([postcode], (DELTA SCHOOL)(postcode, kind));
}

ON BATCH UPDATE OF CAFE {
  SUMS(long)[][] += AggSum([], (DELTA CAFE)(postcode, seats) *
    V_HOUSE(long)[][postcode] * V_SHOP(long)[][postcode] * V_SCHOOL(long)[][postcode] *
    V_PEOPLE(long)[][postcode] * V_BUS(long)[][postcode]);
  V_CAFE(long)[][postcode] += AggSum([postcode], (DELTA CAFE)(postcode, seats));
}

ON BATCH UPDATE OF PEOPLE {
  SUMS(long)[][] += AggSum([], (DELTA PEOPLE)(postcode, age) *
    V_HOUSE(long)[][postcode] * V_SHOP(long)[][postcode] * V_SCHOOL(long)[][postcode] *
    V_CAFE(long)[][postcode] * V_BUS(long)[][postcode]);
  V_PEOPLE(long)[][postcode] += AggSum([postcode], (DELTA PEOPLE)(postcode, age));
}

ON BATCH UPDATE OF BUS {
  SUMS(long)[][] += AggSum([], (DELTA BUS)(postcode, line) *
    V_HOUSE(long)[][postcode] * V_SHOP(long)[][postcode] * V_SCHOOL(long)[][postcode] *
    V_CAFE(long)[][postcode] * V_PEOPLE(long)[][postcode]);
  V_BUS(long)[][postcode] += AggSum([postcode], (DELTA BUS)(postcode, line));
}
