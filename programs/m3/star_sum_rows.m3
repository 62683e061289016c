-- A sum over a star join of six relations; row by row: one map per relation, and the product of the others.
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

ON + HOUSE(postcode, price) {
  SUMS(long)[][] += price * V_SHOP(long)[][postcode] * V_SCHOOL(long)[][postcode] * V_CAFE(long)[][postcode] *
    V_PEOPLE(long)[][postcode] * V_BUS(long)[][postcode];
  V_HOUSE(long)[][postcode] += price;
}

ON + SHOP(postcode, sales) {
  SUMS(long)[][] += sales * V_HOUSE(long)[][postcode] * V_SCHOOL(long)[][postcode] * V_CAFE(long)[][postcode] *
    V_PEOPLE(long)[][postcode] * V_BUS(long)[][postcode];
  V_SHOP(long)[][postcode] += sales;
}

ON + SCHOOL(postcode, kind) {
  SUMS(long)[][] += V_HOUSE(long)[][postcode] * V_SHOP(long)[][postcode] * V_CAFE(long)[][postcode] *
    V_PEOPLE(long)[][postcode] * V_BUS(long)[][postcode];
  V_SCHOOL(long)[][postcode] += 1;
}

ON + CAFE(postcode, seats) {
  SUMS(long)[][] += V_HOUSE(long)[][postcode] * V_SHOP(long)[][postcode] * V_SCHOOL(long)[][postcode] *
    V_PEOPLE(long)[][postcode] * V_BUS(long)[][postcode];
  V_CAFE(long)[][postcode] += 1;
}

ON + PEOPLE(postcode, age) {
  SUMS(long)[][] += V_HOUSE(long)[][postcode] * V_SHOP(long)[][postcode] * V_SCHOOL(long)[][postcode] *
    V_CAFE(long)[][postcode] * V_BUS(long)[][postcode];
  V_PEOPLE(long)[][postcode] += 1;
}

ON + BUS(postcode, line) {
  SUMS(long)[][] += V_HOUSE(long)[][postcode] * V_SHOP(long)[][postcode] * V_SCHOOL(long)[][postcode] *
    V_CAFE(long)[][postcode] * V_PEOPLE(long)[][postcode];
  V_BUS(long)[][postcode] += 1;
}

ON - HOUSE(postcode, price) {
  SUMS(long)[][] += -1 * price * V_SHOP(long)[][postcode] * V_SCHOOL(long)[][postcode] * V_CAFE(long)[][postcode] *
    V_PEOPLE(long)[][postcode] * V_BUS(long)[][postcode];
  V_HOUSE(long)[][postcode] += -1 * price;
}

ON - SHOP(postcode, sales) {
  SUMS(long)[][] += -1 * sales * V_HOUSE(long)[][postcode] * V_SCHOOL(long)[][postcode] * V_CAFE(long)[][postcode] *
    V_PEOPLE(long)[][postcode] * V_BUS(long)[][postcode];
  V_SHOP(long)[][postcode] += -1 * sales;
}

ON - SCHOOL(postcode, kind) {
  SUMS(long)[][] += -1 * V_HOUSE(long)[][postcode] * V_SHOP(long)[][postcode] * V_CAFE(long)[][postcode] *
    V_PEOPLE(long)[][postcode] * V_BUS(long)[][postcode];
  V_SCHOOL(long)[][postcode] += -1;
}

ON - CAFE(postcode, seats) {
  SUMS(long)[][] += -1 * V_HOUSE(long)[][postcode] * V_SHOP(long)[][postcode] * V_SCHOOL(long)[][postcode] *
    V_PEOPLE(long)[][postcode] * V_BUS(long)[][postcode];
  V_CAFE(long)[][postcode] += -1;
}

ON - PEOPLE(postcode, age) {
  SUMS(long)[][] += -1 * V_HOUSE(long)[][postcode] * V_SHOP(long)[][postcode] * V_SCHOOL(long)[][postcode] *
    V_CAFE(long)[][postcode] * V_BUS(long)[][postcode];
  V_PEOPLE(long)[][postcode] += -1;
}

ON - BUS(postcode, line) {
  SUMS(long)[][] += -1 * V_HOUSE(long)[][postcode] * V_SHOP(long)[][postcode] * V_SCHOOL(long)[][postcode] *
    V_CAFE(long)[][postcode] * V_PEOPLE(long)[][postcode];
  V_BUS(long)[][postcode] += -1;
}
