ON SYSTEM READY { M[][] = 1; M[][] -= 1; }
