DECLARE MAP M(long)[][exists: int];
