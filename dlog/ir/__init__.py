"""From the syntax tree to typed, safe, stratified rules in normal form."""
