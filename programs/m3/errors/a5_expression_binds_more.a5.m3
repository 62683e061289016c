CREATE TABLE T(A int, B int);
DECLARE MAP M(int)[][A:int] := 0;
ON SYSTEM READY { M[][A:int] += T(A:int, B:int); }
