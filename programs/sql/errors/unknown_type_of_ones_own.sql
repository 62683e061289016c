CREATE TABLE R(a int);
SELECT SUM([f: Ring](a)) FROM R;
