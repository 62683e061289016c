-- The retailer of retailer.sql: units, value and mean price of what lies in the warehouses of each category.
CREATE STREAM INVENTORY(location int, day int, product int, units int)
FROM FILE 'facts/inventory.tbl' LINE DELIMITED CSV(delimiter := '|');

CREATE STREAM LOCATION(location int, zip int, region int, climate int, total_area int,
  selling_area int, income int, rival1_distance double, rival1_minutes double,
  rival2_distance double, rival2_minutes double, rival3_distance double, rival3_minutes double,
  rival4_distance double, rival4_minutes double)
FROM FILE 'facts/location.tbl' LINE DELIMITED CSV(delimiter := '|');

CREATE STREAM CENSUS(zip int, population int, median_age int, houses int, occupied int,
  families int, households int, couples int, males int, females int, children int, group1 int,
  group2 int, group3 int, group4 int, group5 int)
FROM FILE 'facts/census.tbl' LINE DELIMITED CSV(delimiter := '|');

CREATE STREAM ITEM(product int, subcategory int, category int, cluster int, price double)
FROM FILE 'facts/item.tbl' LINE DELIMITED CSV(delimiter := '|');

CREATE STREAM WEATHER(location int, day int, rain int, snow int, warmest int, coldest int,
  wind double, thunder int)
FROM FILE 'facts/weather.tbl' LINE DELIMITED CSV(delimiter := '|');

SELECT category, SUM(units) AS pieces, SUM(units * price) AS worth, AVG(price) AS mean_price
FROM INVENTORY NATURAL JOIN LOCATION NATURAL JOIN CENSUS NATURAL JOIN ITEM NATURAL JOIN WEATHER
WHERE rain = 0
GROUP BY category;
