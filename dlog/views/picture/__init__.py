"""Pictures and explanations of view trees, as SVG, PDF, DOT and text."""
