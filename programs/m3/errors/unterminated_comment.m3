DECLARE QUERY Q := 1; /* and so on
DECLARE QUERY P := 2;
