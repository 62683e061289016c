"""Type inference and type checking of rules."""
