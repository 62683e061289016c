"""Records: values with fields, each stored once and denoted by a number."""
