CREATE STREAM R(a int);
DECLARE MAP M(int)[][] := AggSum([], R(a));
ON BATCH UPDATE OF R { M[][] += AggSum([], (DELTA R)(a)); }
