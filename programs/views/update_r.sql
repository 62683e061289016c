-- The running example: one stream, two tables, a ring of one's own.

CREATE TYPE Ring FROM FILE 'ring.hpp';
CREATE STREAM R(A int, B double, F double)
  FROM FILE 'data/running_r.csv' LINE DELIMITED CSV (delimiter := '|');
CREATE TABLE S(A int, C int, E int)
  FROM FILE 'data/running_s.csv' LINE DELIMITED CSV (delimiter := '|');
CREATE TABLE T(C int, D int)
  FROM FILE 'data/running_t.csv' LINE DELIMITED CSV (delimiter := '|');

SELECT SUM([f_A: Ring](A) * [f_B: Ring](B) * [f_F: Ring](F) * [f_D: Ring](D))
FROM R NATURAL JOIN S NATURAL JOIN T;
