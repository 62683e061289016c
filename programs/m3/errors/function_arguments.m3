CREATE TABLE T(d date, s string);
DECLARE QUERY A := [abs: long](1, 2) + [listmax: long](1);
DECLARE QUERY B := AggSum([], T(d, s) * [year_part: int](s) * [abs: long](d) * [substring: int](s, 1));
