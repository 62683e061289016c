"""Owns a database that survives: its folder of files, recovery, branches, and versions of the past.

`Database` is the engine's with a folder.  Below it, from the disk up: `files` does all input and output,
`frames` cuts files into records with checksums, `columns` packs arrays of codes, `records` says what they
mean, `log` and `checkpoint` are the two kinds of file, `folder` keeps them in step, `replay` and `past` go
forwards and backwards through a log, `timeline` knows branches.
"""
