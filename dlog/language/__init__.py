"""Text to syntax tree and back: preprocessor, lexer, grammar, formatter, error messages of the parser."""
