DECLARE MAP M(long)[][];
DECLARE QUERY Q := M[][]:(1);
