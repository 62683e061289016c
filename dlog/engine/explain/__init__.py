"""How rules are evaluated, and why: the text of `dlog explain`."""
