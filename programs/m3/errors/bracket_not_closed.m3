DECLARE QUERY Q := AggSum([], 1;
ON SYSTEM READY { M[][] += 1;
