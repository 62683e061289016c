-- A cyclic join.  The view over S and T is multiplied by an indicator of R, so that it has no more rows than R:
--   dlog explain programs/sql/triangles.sql --tree triangles.svg
CREATE STREAM R(a int, b int)
FROM FILE 'facts/triangle_r.tbl' LINE DELIMITED CSV(delimiter := '|');

CREATE STREAM S(b int, c int)
FROM FILE 'facts/triangle_s.tbl' LINE DELIMITED CSV(delimiter := '|');

CREATE STREAM T(c int, a int)
FROM FILE 'facts/triangle_t.tbl' LINE DELIMITED CSV(delimiter := '|');

SELECT COUNT(*)
FROM R NATURAL JOIN S NATURAL JOIN T;
