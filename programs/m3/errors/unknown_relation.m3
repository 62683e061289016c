CREATE STREAM ORDERS(a int);
DECLARE MAP M(long)[][] := AggSum([], ORDER(a));
ON + OTHER(a) { }
ON BATCH UPDATE OF ORDRES { M[][] += (DELTA ORDRES)(a); }
