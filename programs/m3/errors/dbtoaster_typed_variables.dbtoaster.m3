CREATE TABLE T(a int);
DECLARE QUERY A := AggSum([], T(a:int));
