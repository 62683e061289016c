DECLARE QUERY Q := {'a = 'b'};
