CREATE TABLE T(a int, b int);
DECLARE QUERY A := AggSum([], T(a, b) * (a - b));
DECLARE QUERY B := AggSum([], T(a, b) * -a);
