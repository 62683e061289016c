-- The product of four matrices: a relation has a row for each entry that is not 0, with its row, column and
-- value.  The variable order is the order of multiplication, here (A1 A2) (A3 A4): see `dlog explain`.
CREATE STREAM A1(i int, j int, x double)
FROM FILE 'facts/matrix_a1.tbl' LINE DELIMITED CSV(delimiter := '|');

CREATE STREAM A2(j int, k int, y double)
FROM FILE 'facts/matrix_a2.tbl' LINE DELIMITED CSV(delimiter := '|');

CREATE STREAM A3(k int, l int, z double)
FROM FILE 'facts/matrix_a3.tbl' LINE DELIMITED CSV(delimiter := '|');

CREATE STREAM A4(l int, m int, w double)
FROM FILE 'facts/matrix_a4.tbl' LINE DELIMITED CSV(delimiter := '|');

SELECT i, m, SUM(x * y * z * w)
FROM A1 NATURAL JOIN A2 NATURAL JOIN A3 NATURAL JOIN A4
GROUP BY i, m;
