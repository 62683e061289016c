CREATE STREAM R(a int, b int) FROM FILE 'r.csv' LINE DELIMITED CSV (delimiter := '|');
SELECT a, STDDEV_POP(b) FROM R GROUP BY a;
