CREATE TABLE R(a int, t string);
SELECT SUM(a / t) FROM R;
