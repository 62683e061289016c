CREATE STREAM R(A int);
DECLARE MAP M(int)[x:int][y:int] := 0;
ON + R(A:int) {
  M[z:float][A:int] += 1;
  M[A:int][A:int] += AggSum([], M[w:int][A:int]);
}
