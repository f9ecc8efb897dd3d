"""The solver for Problem (1) of the paper."""
