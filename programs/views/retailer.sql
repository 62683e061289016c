-- What a retailer has in stock, over a snowflake: by store.

CREATE STREAM INVENTORY(locn int, dateid int, ksn int, inventoryunits int)
  FROM FILE 'data/inventory.csv' LINE DELIMITED CSV (delimiter := '|');
CREATE STREAM LOCATION(locn int, zip int, rgn_cd int, clim_zn_nbr int, tot_area_sq_ft int, sell_area_sq_ft int, avghhi int)
  FROM FILE 'data/location.csv' LINE DELIMITED CSV (delimiter := '|');
CREATE STREAM CENSUS(zip int, population int, white int, asian int, pacific int, black int, medianage int, houses int)
  FROM FILE 'data/census.csv' LINE DELIMITED CSV (delimiter := '|');
CREATE STREAM ITEM(ksn int, subcategory int, category int, categorycluster int, prize int)
  FROM FILE 'data/item.csv' LINE DELIMITED CSV (delimiter := '|');
CREATE STREAM WEATHER(locn int, dateid int, rain int, snow int, maxtemp int, mintemp int, meanwind int, thunder int)
  FROM FILE 'data/weather.csv' LINE DELIMITED CSV (delimiter := '|');

SELECT locn, SUM(inventoryunits), AVG(inventoryunits * prize)
FROM INVENTORY NATURAL JOIN LOCATION NATURAL JOIN CENSUS NATURAL JOIN ITEM NATURAL JOIN WEATHER
WHERE rain < 8 GROUP BY locn;
