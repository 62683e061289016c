-- A market of houses: six relations that share the postcode, all of them streams.  Columns besides the
-- postcode have short names: what they mean does not matter here.
CREATE STREAM HOUSE(postcode int, h2 int, h3 int, h4 int, h5 int, h6 int, h7 int, h8 int, h9 int,
  h10 int, h11 int)
FROM FILE 'facts/house.tbl' LINE DELIMITED CSV(delimiter := '|');

CREATE STREAM SHOP(postcode int, s2 int, s3 int, s4 int, s5 int, s6 int)
FROM FILE 'facts/shop.tbl' LINE DELIMITED CSV(delimiter := '|');

CREATE STREAM INSTITUTION(postcode int, i2 int, i3 int)
FROM FILE 'facts/institution.tbl' LINE DELIMITED CSV(delimiter := '|');

CREATE STREAM RESTAURANT(postcode int, r2 int, r3 int)
FROM FILE 'facts/restaurant.tbl' LINE DELIMITED CSV(delimiter := '|');

CREATE STREAM DEMOGRAPHICS(postcode int, d2 int, d3 int, d4 int, d5 int)
FROM FILE 'facts/demographics.tbl' LINE DELIMITED CSV(delimiter := '|');

CREATE STREAM TRANSPORT(postcode int, t2 int, t3 int, t4 int)
FROM FILE 'facts/transport.tbl' LINE DELIMITED CSV(delimiter := '|');

SELECT SUM(postcode)
FROM HOUSE NATURAL JOIN SHOP NATURAL JOIN INSTITUTION NATURAL JOIN RESTAURANT
  NATURAL JOIN DEMOGRAPHICS NATURAL JOIN TRANSPORT;
