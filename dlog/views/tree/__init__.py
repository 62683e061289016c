"""View trees: views, their payloads and indicator projections, built along a variable order."""
