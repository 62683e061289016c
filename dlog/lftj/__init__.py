"""Leapfrog triejoin: plans, and the machine that runs them."""
