"""From rule bodies to stages, key orders and join plans.  Reads statistics, never data."""
