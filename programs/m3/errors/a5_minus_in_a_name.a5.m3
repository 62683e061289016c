CREATE STREAM R(A int);
DECLARE MAP M(int)[][] := 0;
ON + R(A) { M[][] += A-1; }
