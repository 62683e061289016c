CREATE STREAM R(a duoble);
DECLARE MAP M(RingSum)[][];
