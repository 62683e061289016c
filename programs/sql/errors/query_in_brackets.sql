CREATE STREAM R(a int, b int) FROM FILE 'r.csv' LINE DELIMITED CSV (delimiter := '|');
(SELECT SUM(a) FROM R);
