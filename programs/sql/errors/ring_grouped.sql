CREATE TYPE Ring FROM FILE 'ring.hpp';
CREATE STREAM R(a int, b int);
SELECT COUNT(*) FROM R GROUP BY [f: Ring](a);
