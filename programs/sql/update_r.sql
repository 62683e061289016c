-- The running example of F-IVM: three relations, of which one is a stream.  The order of its variables is in
-- update_r.dtree.
CREATE STREAM R(A int, B double, F double)
FROM FILE 'facts/r.tbl' LINE DELIMITED CSV(delimiter := '|');

CREATE TABLE S(A int, C int, E int)
FROM FILE 'facts/s.tbl' LINE DELIMITED CSV(delimiter := '|');

CREATE TABLE T(C int, D int)
FROM FILE 'facts/t.tbl' LINE DELIMITED CSV(delimiter := '|');

SELECT SUM(A * B * F * D)
FROM R NATURAL JOIN S NATURAL JOIN T;
