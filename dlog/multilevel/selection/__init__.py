"""The choice of the maps that a program stores: estimates of entries and work, and the search."""
