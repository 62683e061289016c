"""The strategy of levels of maps: aggregates in conditions, inequalities and self-joins."""
