CREATE TYPE Ring FROM FILE 'ring.hpp';
CREATE STREAM R(a int, b int);
SELECT SUM([f: Ring](a)) FROM R WHERE EXISTS (SELECT * FROM R x WHERE x.b = R.b);
