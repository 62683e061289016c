"""M3, the trigger language: read, check, print, run."""
