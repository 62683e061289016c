CREATE STREAM R(a int, b int) FROM FILE 'r.csv' LINE DELIMITED CSV (delimiter := '|');
CREATE TABLE S(b int, c double, d date, t varchar(10));
SELECT DISTINCT ON (a) a FROM R WHERE EXISTS (SELECT * FROM S);
