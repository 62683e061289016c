CREATE STREAM R(price int, b int);
DECLARE MAP M(long)[][k: int];
ON + R(price, b) {
  M[][b] += prise;
  M[][x] += 1;
  M[][b] += {y > 1} * M[][y];
}
