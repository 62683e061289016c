"""The log of an export: what was decided at each stage, and why."""
