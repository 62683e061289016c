CREATE STREAM R(A long, B short, C bool);
DECLARE MAP M(Ring<1>)[][] := 0;
CREATE TYPE T FROM FILE 't.hpp';
