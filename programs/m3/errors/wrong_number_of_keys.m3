CREATE STREAM R(a int, b int);
DECLARE MAP M(long)[][k: int];
DECLARE QUERY Q := M[][a, b];
ON + R(a) { M[][] += 1; }
ON BATCH UPDATE OF R { M[][a] += (DELTA R)(a); }
