"""Numbers of assignments: an assignment keeps its number, a new one gets a number that was never given."""
