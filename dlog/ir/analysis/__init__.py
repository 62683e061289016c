"""Analysis of rules: normal form, safety, strata, monotone recursion, inclusions between predicates."""
