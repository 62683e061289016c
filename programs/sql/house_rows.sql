-- The join of houses as in housing.sql, listed by its factors instead of summed:
--   dlog list programs/sql/house_rows.sql -n 5
CREATE STREAM HOUSE(postcode int, h2 int, h3 int, h4 int, h5 int, h6 int, h7 int, h8 int, h9 int,
  h10 int, h11 int)
FROM FILE 'facts/house.tbl' LINE DELIMITED CSV(delimiter := '|');

CREATE STREAM SHOP(postcode int, s2 int, s3 int, s4 int, s5 int, s6 int)
FROM FILE 'facts/shop.tbl' LINE DELIMITED CSV(delimiter := '|');

CREATE STREAM INSTITUTION(postcode int, i2 int, i3 int)
FROM FILE 'facts/institution.tbl' LINE DELIMITED CSV(delimiter := '|');

CREATE STREAM RESTAURANT(postcode int, r2 int, r3 int)
FROM FILE 'facts/restaurant.tbl' LINE DELIMITED CSV(delimiter := '|');

SELECT DISTINCT postcode, h2, s2, i2, r2
FROM HOUSE NATURAL JOIN SHOP NATURAL JOIN INSTITUTION NATURAL JOIN RESTAURANT;
