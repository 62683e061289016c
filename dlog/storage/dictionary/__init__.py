"""The dictionary: strings and their int64 codes, and the order of strings."""
