DECLARE QUERY Q := AggSum([], 1 < 2);
DECLARE QUERY P := x IN [1, 2];
