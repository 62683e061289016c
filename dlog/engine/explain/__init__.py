"""How rules are evaluated, and why, in words: the text of `dlog explain`."""
