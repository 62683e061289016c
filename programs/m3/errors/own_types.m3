CREATE TYPE Ring FROM FILE 'r.hpp' WITH PARAMETER SCHEMA (static, dynamic_sum);
CREATE TYPE Other FROM FILE 'o.hpp';
DECLARE MAP A(Ring<1, 2>)[][];
DECLARE MAP B(Other)[][];
DECLARE MAP C(long)[][k: Other];
DECLARE QUERY P := A[][] * B[][];
DECLARE QUERY S := A[][] + B[][];
DECLARE QUERY L := (x ^= A[][]);
ON SYSTEM READY { A[][] := A[][] * A[][]; B[][] := A[][]; }
