CREATE STREAM R(a int);
CREATE STREAM S(a int);
DECLARE MAP M(long)[][];
ON BATCH UPDATE OF R { M[][] += AggSum([], (DELTA S)(a)); }
