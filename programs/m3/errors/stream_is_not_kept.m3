CREATE STREAM R(a int);
DECLARE MAP M(long)[][] := AggSum([], R(a));
DECLARE QUERY Q := AggSum([], R(a));
ON SYSTEM READY { M[][] += AggSum([], R(a)); }
