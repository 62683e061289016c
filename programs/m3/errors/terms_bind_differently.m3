CREATE TABLE T(a int);
DECLARE QUERY Q := AggSum([], T(a) + 1);
DECLARE QUERY P := T(a) + T(b);
