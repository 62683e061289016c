CREATE STREAM R(a int, b double);
DECLARE MAP M(long)[][aa: int] := AggSum([a], R(a, b));
DECLARE MAP N(long)[][b: int] := AggSum([b], R(a, b));
