"""What functors returned, stored: one call for each row of arguments that comes, none for one that goes."""
