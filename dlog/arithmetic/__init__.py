"""Exact arithmetic on integers of 256 bits, in kernels.  Knows arrays only: no types, rules or relations."""
