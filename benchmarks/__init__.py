"""Speed, always as a ratio to a peer or to another size, both sides in the same run."""
