DECLARE MAP M(int)[][] := 0;
DECLARE QUERY A := M(x:int)[][];
DECLARE QUERY B := (TRUE ^= 1);
