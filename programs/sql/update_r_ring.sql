-- The running example of F-IVM over a ring of one's own: values of A, B, F and D are lifted into it by external
-- functions.  To run what it becomes, the ring and its functions are registered in Python, or given to F-IVM as
-- C++.
CREATE TYPE Ring
FROM FILE "'ring.hpp'";

CREATE STREAM R(A int, B double, F double)
FROM FILE 'facts/r.tbl' LINE DELIMITED CSV(delimiter := '|');

CREATE TABLE S(A int, C int, E int)
FROM FILE 'facts/s.tbl' LINE DELIMITED CSV(delimiter := '|');

CREATE TABLE T(C int, D int)
FROM FILE 'facts/t.tbl' LINE DELIMITED CSV(delimiter := '|');

SELECT SUM([f_A: Ring](A) * [f_B: Ring](B) * [f_F: Ring](F) * [f_D: Ring](D))
FROM R NATURAL JOIN S NATURAL JOIN T;
