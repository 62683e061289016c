"""Owns a durable database: its folder of files, recovery, branches, and past versions.

`Database` is the engine's with a folder.  Below it, from the disk up: `files` does all input and output,
`frames` splits files into records with checksums, `columns` packs arrays of codes, `records` defines what
they mean, `log` and `checkpoint` are the two kinds of file, `folder` keeps them consistent, `replay` and
`past` go forwards and backwards through a log, `timeline` holds branches.
"""
