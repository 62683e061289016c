CREATE STREAM R(a int, b int) FROM FILE 'r.csv' LINE DELIMITED CSV (delimiter := '|');
CREATE TABLE S(b int, c double, d date, t varchar(10));
SELECT SUBSTRING(t FROM 1 FOR 2), COUNT(*) FROM S GROUP BY t HAVING COUNT(*) > 1;
