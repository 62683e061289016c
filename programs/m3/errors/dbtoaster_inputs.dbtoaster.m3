DECLARE MAP M(long)[x: int][];
DECLARE QUERY Q := M[x][];
