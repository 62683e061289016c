"""The join graph of a rule: which of its rows join, as linked arrays.  Knows no rules and no transactions."""
