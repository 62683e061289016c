DECLARE QUERY Q := 1
DECLARE QUERY P := 2;
ON SYSTEM READY {
  M[][] += 1
  M[][] += 2;
}
