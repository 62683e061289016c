"""Queues: the rows that a recursion has derived, each once, in order of arrival."""
