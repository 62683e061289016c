"""The text of M3 programs: lexer, parser, syntax tree, printer, and the two dialects."""
