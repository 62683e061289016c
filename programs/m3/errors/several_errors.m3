CREATE STREAM R(a int, b int);
DECLARE MAP M(long)[][k: int]
DECLARE QUERY Q := M[][k;
ON + R(a, b) { M[][a] += c; }
