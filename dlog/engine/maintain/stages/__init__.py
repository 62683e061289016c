"""The strategy for recursion: every fact has a stage and counts its derivations from lower stages."""
