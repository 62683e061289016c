-- The running example with numbers.

CREATE STREAM R(A int, B double, F double)
  FROM FILE 'data/running_r.csv' LINE DELIMITED CSV (delimiter := '|');
CREATE TABLE S(A int, C int, E int)
  FROM FILE 'data/running_s.csv' LINE DELIMITED CSV (delimiter := '|');
CREATE TABLE T(C int, D int)
  FROM FILE 'data/running_t.csv' LINE DELIMITED CSV (delimiter := '|');

SELECT SUM(A * B * F * D)
FROM R NATURAL JOIN S NATURAL JOIN T;
