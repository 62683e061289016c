CREATE STREAM R(a int(4), b varchar(10));
DECLARE MAP M(Ring<1.5>)[][] := 0;
