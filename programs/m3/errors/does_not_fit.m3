CREATE STREAM R(a double, s string);
DECLARE MAP M(long)[][k: int];
DECLARE MAP N(string)[][];
ON + R(a, s) { M[][a] += 1; M[][k] += (k ^= 1) * a; M[][s] += 1; }
