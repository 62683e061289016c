CREATE TABLE T(s string, d date);
DECLARE QUERY Q := AggSum([], T(s, d) * s);
DECLARE QUERY P := 'a' + 1;
