DECLARE QUERY Q := (x ^= 1) * {x IN [1, x]};
