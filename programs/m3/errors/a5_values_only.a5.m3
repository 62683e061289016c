DECLARE MAP M(int)[][] := 0;
DECLARE QUERY A := {M[][] > 1};
DECLARE QUERY B := {AggSum([], M[][]) IN [1]};
DECLARE QUERY C := [abs:int](M[][]);
DECLARE QUERY D := [lift<1>:int](1);
