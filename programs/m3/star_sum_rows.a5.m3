-- star_sum_rows.m3 in the dialect a5.

CREATE STREAM HOUSE(postcode int, price int)
  FROM FILE 'data/house.events.csv' LINE DELIMITED CSV (delimiter := '|', deletions := 'true');

CREATE STREAM SHOP(postcode int, sales int)
  FROM FILE 'data/shop.events.csv' LINE DELIMITED CSV (delimiter := '|', deletions := 'true');

CREATE STREAM SCHOOL(postcode int, kind int)
  FROM FILE 'data/school.events.csv' LINE DELIMITED CSV (delimiter := '|', deletions := 'true');

CREATE STREAM CAFE(postcode int, seats int)
  FROM FILE 'data/cafe.events.csv' LINE DELIMITED CSV (delimiter := '|', deletions := 'true');

CREATE STREAM PEOPLE(postcode int, age int)
  FROM FILE 'data/people.events.csv' LINE DELIMITED CSV (delimiter := '|', deletions := 'true');

CREATE STREAM BUS(postcode int, line_ int)
  FROM FILE 'data/bus.events.csv' LINE DELIMITED CSV (delimiter := '|', deletions := 'true');

DECLARE MAP SUMS(int)[][] :=
  AggSum([],
    HOUSE(postcode:int, price:int) *
    SHOP(postcode:int, sales:int) *
    SCHOOL(postcode:int, kind:int) *
    CAFE(postcode:int, seats:int) *
    PEOPLE(postcode:int, age:int) *
    BUS(postcode:int, line_:int) *
    price:int *
    sales:int
  );

DECLARE MAP V_HOUSE(int)[][postcode: int] :=
  AggSum([postcode:int], HOUSE(postcode:int, price:int) * price:int);

DECLARE MAP V_SHOP(int)[][postcode: int] :=
  AggSum([postcode:int], SHOP(postcode:int, sales:int) * sales:int);

DECLARE MAP V_SCHOOL(int)[][postcode: int] :=
  AggSum([postcode:int], SCHOOL(postcode:int, kind:int));

DECLARE MAP V_CAFE(int)[][postcode: int] := AggSum([postcode:int], CAFE(postcode:int, seats:int));

DECLARE MAP V_PEOPLE(int)[][postcode: int] := AggSum([postcode:int], PEOPLE(postcode:int, age:int));

DECLARE MAP V_BUS(int)[][postcode: int] := AggSum([postcode:int], BUS(postcode:int, line_:int));

DECLARE QUERY SUMS := SUMS(int)[][];

ON + HOUSE(postcode:int, price:int) {
  SUMS(int)[][] +=
    price:int *
    V_SHOP(int)[][postcode:int] *
    V_SCHOOL(int)[][postcode:int] *
    V_CAFE(int)[][postcode:int] *
    V_PEOPLE(int)[][postcode:int] *
    V_BUS(int)[][postcode:int];
  V_HOUSE(int)[][postcode:int] += price:int;
}

ON + SHOP(postcode:int, sales:int) {
  SUMS(int)[][] +=
    sales:int *
    V_HOUSE(int)[][postcode:int] *
    V_SCHOOL(int)[][postcode:int] *
    V_CAFE(int)[][postcode:int] *
    V_PEOPLE(int)[][postcode:int] *
    V_BUS(int)[][postcode:int];
  V_SHOP(int)[][postcode:int] += sales:int;
}

ON + SCHOOL(postcode:int, kind:int) {
  SUMS(int)[][] +=
    V_HOUSE(int)[][postcode:int] *
    V_SHOP(int)[][postcode:int] *
    V_CAFE(int)[][postcode:int] *
    V_PEOPLE(int)[][postcode:int] *
    V_BUS(int)[][postcode:int];
  V_SCHOOL(int)[][postcode:int] += 1;
}

ON + CAFE(postcode:int, seats:int) {
  SUMS(int)[][] +=
    V_HOUSE(int)[][postcode:int] *
    V_SHOP(int)[][postcode:int] *
    V_SCHOOL(int)[][postcode:int] *
    V_PEOPLE(int)[][postcode:int] *
    V_BUS(int)[][postcode:int];
  V_CAFE(int)[][postcode:int] += 1;
}

ON + PEOPLE(postcode:int, age:int) {
  SUMS(int)[][] +=
    V_HOUSE(int)[][postcode:int] *
    V_SHOP(int)[][postcode:int] *
    V_SCHOOL(int)[][postcode:int] *
    V_CAFE(int)[][postcode:int] *
    V_BUS(int)[][postcode:int];
  V_PEOPLE(int)[][postcode:int] += 1;
}

ON + BUS(postcode:int, line_:int) {
  SUMS(int)[][] +=
    V_HOUSE(int)[][postcode:int] *
    V_SHOP(int)[][postcode:int] *
    V_SCHOOL(int)[][postcode:int] *
    V_CAFE(int)[][postcode:int] *
    V_PEOPLE(int)[][postcode:int];
  V_BUS(int)[][postcode:int] += 1;
}

ON - HOUSE(postcode:int, price:int) {
  SUMS(int)[][] +=
    (-1) *
    price:int *
    V_SHOP(int)[][postcode:int] *
    V_SCHOOL(int)[][postcode:int] *
    V_CAFE(int)[][postcode:int] *
    V_PEOPLE(int)[][postcode:int] *
    V_BUS(int)[][postcode:int];
  V_HOUSE(int)[][postcode:int] += (-1) * price:int;
}

ON - SHOP(postcode:int, sales:int) {
  SUMS(int)[][] +=
    (-1) *
    sales:int *
    V_HOUSE(int)[][postcode:int] *
    V_SCHOOL(int)[][postcode:int] *
    V_CAFE(int)[][postcode:int] *
    V_PEOPLE(int)[][postcode:int] *
    V_BUS(int)[][postcode:int];
  V_SHOP(int)[][postcode:int] += (-1) * sales:int;
}

ON - SCHOOL(postcode:int, kind:int) {
  SUMS(int)[][] +=
    (-1) *
    V_HOUSE(int)[][postcode:int] *
    V_SHOP(int)[][postcode:int] *
    V_CAFE(int)[][postcode:int] *
    V_PEOPLE(int)[][postcode:int] *
    V_BUS(int)[][postcode:int];
  V_SCHOOL(int)[][postcode:int] += -1;
}

ON - CAFE(postcode:int, seats:int) {
  SUMS(int)[][] +=
    (-1) *
    V_HOUSE(int)[][postcode:int] *
    V_SHOP(int)[][postcode:int] *
    V_SCHOOL(int)[][postcode:int] *
    V_PEOPLE(int)[][postcode:int] *
    V_BUS(int)[][postcode:int];
  V_CAFE(int)[][postcode:int] += -1;
}

ON - PEOPLE(postcode:int, age:int) {
  SUMS(int)[][] +=
    (-1) *
    V_HOUSE(int)[][postcode:int] *
    V_SHOP(int)[][postcode:int] *
    V_SCHOOL(int)[][postcode:int] *
    V_CAFE(int)[][postcode:int] *
    V_BUS(int)[][postcode:int];
  V_PEOPLE(int)[][postcode:int] += -1;
}

ON - BUS(postcode:int, line_:int) {
  SUMS(int)[][] +=
    (-1) *
    V_HOUSE(int)[][postcode:int] *
    V_SHOP(int)[][postcode:int] *
    V_SCHOOL(int)[][postcode:int] *
    V_CAFE(int)[][postcode:int] *
    V_PEOPLE(int)[][postcode:int];
  V_BUS(int)[][postcode:int] += -1;
}
