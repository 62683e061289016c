CREATE TABLE T(a int);
ON + T(a) { }
