CREATE TABLE T(a int);
DECLARE QUERY Q := AggSum([b], T(a));
