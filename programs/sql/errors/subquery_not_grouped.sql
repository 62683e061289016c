CREATE STREAM R(a int, b int) FROM FILE 'r.csv' LINE DELIMITED CSV (delimiter := '|');
CREATE TABLE S(b int, c double, d date, t varchar(10));
SELECT b, SUM(a) FROM R GROUP BY b HAVING EXISTS (SELECT * FROM S WHERE S.b = R.a);
