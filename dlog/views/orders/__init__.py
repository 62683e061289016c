"""Variable orders: how they are found, read and written."""
