CREATE STREAM R(a int, b int) FROM FILE 'r.csv' LINE DELIMITED CSV (delimiter := '|');
CREATE TABLE S(b int, c double, d date, t varchar(10));
WITH RECURSIVE x AS (SELECT a FROM R) SELECT SUM(a) FROM x;
