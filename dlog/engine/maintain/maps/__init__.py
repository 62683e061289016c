"""What strategies share that keep maps of an M3 program beside the store."""
