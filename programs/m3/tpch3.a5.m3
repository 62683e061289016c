-- tpch3.m3 in the dialect a5.

CREATE STREAM CUSTOMER(custkey int, segment string)
  FROM FILE 'data/customer.events.csv' LINE DELIMITED CSV (delimiter := '|', deletions := 'true');

CREATE STREAM ORDERS(orderkey int, custkey int, orderdate date, shippriority int)
  FROM FILE 'data/orders.events.csv' LINE DELIMITED CSV (delimiter := '|', deletions := 'true');

CREATE STREAM LINEITEM(orderkey int, price float, discount float, shipdate date)
  FROM FILE 'data/lineitem.events.csv' LINE DELIMITED CSV (delimiter := '|', deletions := 'true');

DECLARE MAP REVENUE(float)[][orderkey: int, orderdate: date, shippriority: int] :=
  AggSum([orderkey:int, orderdate:date, shippriority:int],
    CUSTOMER(custkey:int, segment:string) *
    {segment:string = 'BUILDING'} *
    ORDERS(orderkey:int, custkey:int, orderdate:date, shippriority:int) *
    {orderdate:date < DATE('1995-03-15')} *
    LINEITEM(orderkey:int, price:float, discount:float, shipdate:date) *
    {shipdate:date > DATE('1995-03-15')} *
    price:float *
    (1 + ((-1) * discount:float))
  );

DECLARE MAP BUILDING(int)[][custkey: int] :=
  AggSum([custkey:int], CUSTOMER(custkey:int, segment:string) * {segment:string = 'BUILDING'});

DECLARE MAP OPEN(int)[][orderkey: int, custkey: int, orderdate: date, shippriority: int] :=
  AggSum([orderkey:int, custkey:int, orderdate:date, shippriority:int],
    ORDERS(orderkey:int, custkey:int, orderdate:date, shippriority:int) *
    {orderdate:date < DATE('1995-03-15')}
  );

DECLARE MAP WANTED(int)[][orderkey: int, orderdate: date, shippriority: int] := 0;

DECLARE MAP UNSHIPPED(float)[][orderkey: int] := 0;

DECLARE QUERY REVENUE := REVENUE(float)[][orderkey:int, orderdate:date, shippriority:int];

ON + CUSTOMER(custkey:int, segment:string) {
  REVENUE(float)[][o:int, d:date, s:int] +=
    AggSum([o:int, d:date, s:int],
      {segment:string = 'BUILDING'} *
      OPEN(int)[][o:int, custkey:int, d:date, s:int] *
      UNSHIPPED(float)[][o:int]
    );
  WANTED(int)[][o:int, d:date, s:int] +=
    AggSum([o:int, d:date, s:int],
      {segment:string = 'BUILDING'} * OPEN(int)[][o:int, custkey:int, d:date, s:int]
    );
  BUILDING(int)[][custkey:int] += {segment:string = 'BUILDING'};
}

ON - CUSTOMER(custkey:int, segment:string) {
  REVENUE(float)[][o:int, d:date, s:int] +=
    AggSum([o:int, d:date, s:int],
      (-1) *
      {segment:string = 'BUILDING'} *
      OPEN(int)[][o:int, custkey:int, d:date, s:int] *
      UNSHIPPED(float)[][o:int]
    );
  WANTED(int)[][o:int, d:date, s:int] +=
    AggSum([o:int, d:date, s:int],
      (-1) * {segment:string = 'BUILDING'} * OPEN(int)[][o:int, custkey:int, d:date, s:int]
    );
  BUILDING(int)[][custkey:int] += (-1) * {segment:string = 'BUILDING'};
}

ON + ORDERS(orderkey:int, custkey:int, orderdate:date, shippriority:int) {
  REVENUE(float)[][orderkey:int, orderdate:date, shippriority:int] +=
    {orderdate:date < DATE('1995-03-15')} *
    BUILDING(int)[][custkey:int] *
    UNSHIPPED(float)[][orderkey:int];
  WANTED(int)[][orderkey:int, orderdate:date, shippriority:int] +=
    {orderdate:date < DATE('1995-03-15')} * BUILDING(int)[][custkey:int];
  OPEN(int)[][orderkey:int, custkey:int, orderdate:date, shippriority:int] +=
    {orderdate:date < DATE('1995-03-15')};
}

ON - ORDERS(orderkey:int, custkey:int, orderdate:date, shippriority:int) {
  REVENUE(float)[][orderkey:int, orderdate:date, shippriority:int] +=
    (-1) *
    {orderdate:date < DATE('1995-03-15')} *
    BUILDING(int)[][custkey:int] *
    UNSHIPPED(float)[][orderkey:int];
  WANTED(int)[][orderkey:int, orderdate:date, shippriority:int] +=
    (-1) * {orderdate:date < DATE('1995-03-15')} * BUILDING(int)[][custkey:int];
  OPEN(int)[][orderkey:int, custkey:int, orderdate:date, shippriority:int] +=
    (-1) * {orderdate:date < DATE('1995-03-15')};
}

ON + LINEITEM(orderkey:int, price:float, discount:float, shipdate:date) {
  REVENUE(float)[][orderkey:int, d:date, s:int] +=
    AggSum([orderkey:int, d:date, s:int],
      {shipdate:date > DATE('1995-03-15')} *
      WANTED(int)[][orderkey:int, d:date, s:int] *
      price:float *
      (1 + ((-1) * discount:float))
    );
  UNSHIPPED(float)[][orderkey:int] +=
    {shipdate:date > DATE('1995-03-15')} * price:float * (1 + ((-1) * discount:float));
}

ON - LINEITEM(orderkey:int, price:float, discount:float, shipdate:date) {
  REVENUE(float)[][orderkey:int, d:date, s:int] +=
    AggSum([orderkey:int, d:date, s:int],
      (-1) *
      {shipdate:date > DATE('1995-03-15')} *
      WANTED(int)[][orderkey:int, d:date, s:int] *
      price:float *
      (1 + ((-1) * discount:float))
    );
  UNSHIPPED(float)[][orderkey:int] +=
    (-1) * {shipdate:date > DATE('1995-03-15')} * price:float * (1 + ((-1) * discount:float));
}
