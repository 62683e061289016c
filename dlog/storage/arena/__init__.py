"""The arena: the one array in which all rows and pages are allocated."""
