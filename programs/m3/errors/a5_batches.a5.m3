CREATE STREAM R(A int);
DECLARE MAP M(int)[][] := 0;
ON BATCH UPDATE OF R {
  M[][] += (DELTA R)(A);
  if (1 > 0) { M[][] += 1; }
}
