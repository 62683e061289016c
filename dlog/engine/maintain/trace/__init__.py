"""The trace strategy: sensitivity indices record where a join searched; a change re-examines only that."""
