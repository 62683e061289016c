CREATE STREAM R(A int);
DECLARE MAP M(int)[][x:int] := 0;
ON + R(A:int) {
  M[][A:int]:(1.5) += 1;
  M[][A:int] += AggSum([], M[][y:int]:(1)) + M[][A:int]:(2.5);
  M[][A:int]:(M[][y:int]) += 1;
}
