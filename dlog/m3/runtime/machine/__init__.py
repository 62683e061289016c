"""The kernels that run compiled triggers, over columns or one row at a time."""
