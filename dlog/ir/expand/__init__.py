"""Syntax tree to syntax tree, before names are resolved: what stands for other statements."""
