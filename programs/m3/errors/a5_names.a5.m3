CREATE STREAM orders(A int, DATE int);
DECLARE MAP MAP(int)[][] := 0;
ON + orders(A, FILE) { }
