"""Rules of programs as queries: for view trees, and for levels of maps."""
