"""The last resort: strata that no strategy can follow are evaluated from scratch."""
