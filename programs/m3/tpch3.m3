-- The shape of TPC-H's query 3: revenue of orders of one market segment that were not shipped by a date.
--   SELECT l.orderkey, o.orderdate, o.shippriority, sum(l.price * (1 - l.discount))
--   FROM customer c, orders o, lineitem l
--   WHERE c.segment = 'BUILDING' AND c.custkey = o.custkey AND l.orderkey = o.orderkey
--     AND o.orderdate < DATE '1995-03-15' AND l.shipdate > DATE '1995-03-15'
--   GROUP BY l.orderkey, o.orderdate, o.shippriority

CREATE STREAM CUSTOMER(custkey int, segment string)
  FROM FILE 'data/customer.csv' LINE DELIMITED CSV (delimiter := '|');
CREATE STREAM ORDERS(orderkey int, custkey int, orderdate date, shippriority int)
  FROM FILE 'data/orders.csv' LINE DELIMITED CSV (delimiter := '|');
CREATE STREAM LINEITEM(orderkey int, price double, discount double, shipdate date)
  FROM FILE 'data/lineitem.csv' LINE DELIMITED CSV (delimiter := '|');

DECLARE MAP REVENUE(double)[][orderkey: int, orderdate: date, shippriority: int] :=
  AggSum([orderkey, orderdate, shippriority],
    CUSTOMER(custkey, segment) * {segment = 'BUILDING'} *
    ORDERS(orderkey, custkey, orderdate, shippriority) * {orderdate < DATE('1995-03-15')} *
    LINEITEM(orderkey, price, discount, shipdate) * {shipdate > DATE('1995-03-15')} *
    price * (1 + (-1 * discount)));
DECLARE MAP BUILDING(long)[][custkey: int] :=
  AggSum([custkey], CUSTOMER(custkey, segment) * {segment = 'BUILDING'});
DECLARE MAP OPEN(long)[][orderkey: int, custkey: int, orderdate: date, shippriority: int] :=
  AggSum([orderkey, custkey, orderdate, shippriority],
    ORDERS(orderkey, custkey, orderdate, shippriority) * {orderdate < DATE('1995-03-15')});
DECLARE MAP WANTED(long)[][orderkey: int, orderdate: date, shippriority: int];
DECLARE MAP UNSHIPPED(double)[][orderkey: int];

DECLARE QUERY REVENUE := REVENUE(double)[][orderkey, orderdate, shippriority];

ON + CUSTOMER(custkey, segment) {
  REVENUE(double)[][o, d, s] += AggSum([o, d, s],
    {segment = 'BUILDING'} * OPEN(long)[][o, custkey, d, s] * UNSHIPPED(double)[][o]);
  WANTED(long)[][o, d, s] += AggSum([o, d, s], {segment = 'BUILDING'} * OPEN(long)[][o, custkey, d, s]);
  BUILDING(long)[][custkey] += {segment = 'BUILDING'};
}

ON - CUSTOMER(custkey, segment) {
  REVENUE(double)[][o, d, s] += AggSum([o, d, s],
    -1 * {segment = 'BUILDING'} * OPEN(long)[][o, custkey, d, s] * UNSHIPPED(double)[][o]);
  WANTED(long)[][o, d, s] += AggSum([o, d, s],
    -1 * {segment = 'BUILDING'} * OPEN(long)[][o, custkey, d, s]);
  BUILDING(long)[][custkey] += -1 * {segment = 'BUILDING'};
}

ON + ORDERS(orderkey, custkey, orderdate, shippriority) {
  REVENUE(double)[][orderkey, orderdate, shippriority] +=
    {orderdate < DATE('1995-03-15')} * BUILDING(long)[][custkey] * UNSHIPPED(double)[][orderkey];
  WANTED(long)[][orderkey, orderdate, shippriority] +=
    {orderdate < DATE('1995-03-15')} * BUILDING(long)[][custkey];
  OPEN(long)[][orderkey, custkey, orderdate, shippriority] += {orderdate < DATE('1995-03-15')};
}

ON - ORDERS(orderkey, custkey, orderdate, shippriority) {
  REVENUE(double)[][orderkey, orderdate, shippriority] +=
    -1 * {orderdate < DATE('1995-03-15')} * BUILDING(long)[][custkey] * UNSHIPPED(double)[][orderkey];
  WANTED(long)[][orderkey, orderdate, shippriority] +=
    -1 * {orderdate < DATE('1995-03-15')} * BUILDING(long)[][custkey];
  OPEN(long)[][orderkey, custkey, orderdate, shippriority] += -1 * {orderdate < DATE('1995-03-15')};
}

ON + LINEITEM(orderkey, price, discount, shipdate) {
  REVENUE(double)[][orderkey, d, s] += AggSum([orderkey, d, s],
    {shipdate > DATE('1995-03-15')} * WANTED(long)[][orderkey, d, s] * price * (1 + (-1 * discount)));
  UNSHIPPED(double)[][orderkey] += {shipdate > DATE('1995-03-15')} * price * (1 + (-1 * discount));
}

ON - LINEITEM(orderkey, price, discount, shipdate) {
  REVENUE(double)[][orderkey, d, s] += AggSum([orderkey, d, s],
    -1 * {shipdate > DATE('1995-03-15')} * WANTED(long)[][orderkey, d, s] * price * (1 + (-1 * discount)));
  UNSHIPPED(double)[][orderkey] += -1 * {shipdate > DATE('1995-03-15')} * price * (1 + (-1 * discount));
}
