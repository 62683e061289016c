"""The join graph strategy: linked arrays of the rows that join give the change of a body."""
