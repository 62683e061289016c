"""The trace strategy: sensitivity indices record where a join looked; a change re-examines only that."""
