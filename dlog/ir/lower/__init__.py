"""Syntax tree to rules: names, scopes, aggregates, literals, directives."""
