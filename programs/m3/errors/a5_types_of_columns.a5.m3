CREATE TABLE R(A int, B float);
DECLARE MAP M(int)[][k:int] := AggSum([k:int], R(k:int, B:int));
CREATE STREAM S(A int);
ON + S(A:float) { }
