CREATE TABLE T(a int);
DECLARE MAP M(long)[][k: int];
DECLARE QUERY A := (x ^= T(a));
DECLARE QUERY B := {M[][k] > 1};
DECLARE QUERY C := [abs: long](M[][k]) * {T(a) IN [1]};
