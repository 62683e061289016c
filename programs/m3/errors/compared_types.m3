CREATE TABLE T(s string, d date, n int);
DECLARE QUERY A := AggSum([], T(s, d, n) * {s > n});
DECLARE QUERY B := AggSum([], T(s, d, n) * {n IN ['a']});
DECLARE QUERY C := AggSum([], T(s, d, n) * (s ^= n));
DECLARE QUERY D := AggSum([], T(s, d, n) * T(n, d, n));
