"""Facts of a recursion with their stages and support counts, as arrays.  Knows no rules."""
