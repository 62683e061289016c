CREATE STREAM R(a int, a int);
DECLARE MAP M(int)[][k: int, k: int] := 0;
ON + R(x, x) { }
