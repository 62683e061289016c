-- A sum over the market of houses: six relations that share one column.

CREATE STREAM HOUSE(postcode int, h2 int, h3 int, h4 int, h5 int, h6 int, h7 int, h8 int, h9 int, h10 int, h11 int)
  FROM FILE 'data/house.csv' LINE DELIMITED CSV (delimiter := '|');
CREATE STREAM SHOP(postcode int, s2 int, s3 int, s4 int, s5 int, s6 int)
  FROM FILE 'data/shop.csv' LINE DELIMITED CSV (delimiter := '|');
CREATE STREAM INSTITUTION(postcode int, i2 int, i3 int)
  FROM FILE 'data/institution.csv' LINE DELIMITED CSV (delimiter := '|');
CREATE STREAM RESTAURANT(postcode int, r2 int, r3 int)
  FROM FILE 'data/restaurant.csv' LINE DELIMITED CSV (delimiter := '|');
CREATE STREAM DEMOGRAPHICS(postcode int, d2 int, d3 int, d4 int, d5 int)
  FROM FILE 'data/demographics.csv' LINE DELIMITED CSV (delimiter := '|');
CREATE STREAM TRANSPORT(postcode int, t2 int, t3 int, t4 int)
  FROM FILE 'data/transport.csv' LINE DELIMITED CSV (delimiter := '|');

SELECT SUM(postcode), COUNT(*), SUM(h2 * s3)
FROM HOUSE NATURAL JOIN SHOP NATURAL JOIN INSTITUTION NATURAL JOIN RESTAURANT
  NATURAL JOIN DEMOGRAPHICS NATURAL JOIN TRANSPORT;
