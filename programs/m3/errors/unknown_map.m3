DECLARE MAP Total(long)[][];
DECLARE QUERY Q := Totl[][];
ON SYSTEM READY { Other[][] += 1; }
