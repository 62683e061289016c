"""From bindings of a body to rows of a head: projection, aggregation, conflicts of functions."""
