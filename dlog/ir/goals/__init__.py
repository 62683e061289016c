"""Goal-directed rewriting: evaluate only what the goals of a program need (magic sets)."""
