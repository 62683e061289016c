DECLARE QUERY Q := [lsitmax: long](1, 2) + [haversine: double](1, 2);
