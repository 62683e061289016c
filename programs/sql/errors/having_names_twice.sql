CREATE STREAM R(a int, b int) FROM FILE 'r.csv' LINE DELIMITED CSV (delimiter := '|');
CREATE TABLE S(b int, c double, d date, t varchar(10));
SELECT b AS x, SUM(a) AS x FROM R GROUP BY b HAVING SUM(a) > 1;
