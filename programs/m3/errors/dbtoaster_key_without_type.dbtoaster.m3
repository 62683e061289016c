DECLARE MAP M(long)[][k];
