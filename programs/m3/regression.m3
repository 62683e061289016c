-- What a linear regression over a join needs, in one ring: count, sums, and sums of products of price and sales.
--   SELECT count(*), sum(price), sum(sales), sum(price * price), sum(price * sales), sum(sales * sales)
--   FROM house NATURAL JOIN shop

CREATE TYPE RingCofactor FROM FILE 'ring_cofactor.hpp'
  WITH PARAMETER SCHEMA (dynamic_min, static, dynamic_sum);

CREATE STREAM HOUSE(postcode int, price int) FROM FILE 'data/house.csv' LINE DELIMITED CSV (delimiter := '|');
CREATE STREAM SHOP(postcode int, sales int) FROM FILE 'data/shop.csv' LINE DELIMITED CSV (delimiter := '|');

DECLARE MAP COFACTOR(RingCofactor<0, double, 2>)[][] :=
  AggSum([],
    HOUSE(postcode, price) * [lift<0>: RingCofactor<0, double, 1>](price) *
    SHOP(postcode, sales) * [lift<1>: RingCofactor<1, double, 1>](sales));
DECLARE MAP V_HOUSE(RingCofactor<0, double, 1>)[][postcode: int];
DECLARE MAP V_SHOP(RingCofactor<1, double, 1>)[][postcode: int];

DECLARE QUERY COFACTOR := COFACTOR(RingCofactor<0, double, 2>)[][];

ON BATCH UPDATE OF HOUSE {
  COFACTOR(RingCofactor<0, double, 2>)[][] += AggSum([],
    (DELTA HOUSE)(postcode, price) * [lift<0>: RingCofactor<0, double, 1>](price) *
    V_SHOP(RingCofactor<1, double, 1>)[][postcode]);
  V_HOUSE(RingCofactor<0, double, 1>)[][postcode] += AggSum([postcode],
    (DELTA HOUSE)(postcode, price) * [lift<0>: RingCofactor<0, double, 1>](price));
}

ON BATCH UPDATE OF SHOP {
  COFACTOR(RingCofactor<0, double, 2>)[][] += AggSum([],
    (DELTA SHOP)(postcode, sales) * [lift<1>: RingCofactor<1, double, 1>](sales) *
    V_HOUSE(RingCofactor<0, double, 1>)[][postcode]);
  V_SHOP(RingCofactor<1, double, 1>)[][postcode] += AggSum([postcode],
    (DELTA SHOP)(postcode, sales) * [lift<1>: RingCofactor<1, double, 1>](sales));
}
