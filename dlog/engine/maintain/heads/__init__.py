"""How a head absorbs the change of its rules' bodies, however that was found: rows with counts, groups."""
