DECLARE MAP M(int)[][];
