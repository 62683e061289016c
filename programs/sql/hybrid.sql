-- Four relations of which only R changes.  The picture of its views shows the way of R's changes:
--   dlog m3 programs/sql/hybrid.sql --order programs/sql/hybrid.dtree --tree hybrid.svg
CREATE STREAM R(A int, B int, C int, extra int)
FROM FILE 'facts/hybrid_r.tbl' LINE DELIMITED CSV(delimiter := '|');

CREATE TABLE S(A int, B int, D int)
FROM FILE 'facts/hybrid_s.tbl' LINE DELIMITED CSV(delimiter := '|');

CREATE TABLE T(A int, E int)
FROM FILE 'facts/hybrid_t.tbl' LINE DELIMITED CSV(delimiter := '|');

CREATE TABLE U(E int, F int)
FROM FILE 'facts/hybrid_u.tbl' LINE DELIMITED CSV(delimiter := '|');

SELECT SUM(A)
FROM R NATURAL JOIN S NATURAL JOIN T NATURAL JOIN U;
