CREATE STREAM R(A int, B float);
DECLARE MAP M(float)[][k:int] := 0;
ON + R(A, B) { M[][A:int] += B:float; }
ON - R(A:int, B:float) { M[][A] += B; M[][A:float] += B; }
