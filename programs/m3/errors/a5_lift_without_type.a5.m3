CREATE STREAM R(A int);
DECLARE MAP M(int)[][k:int] := 0;
ON SYSTEM READY {
  M[][x] += (x ^= 1);
  M[][x:int] += (x:float ^= 1);
}
ON + R(A) { M[][x:int] += (x:int ^= A * 2); }
