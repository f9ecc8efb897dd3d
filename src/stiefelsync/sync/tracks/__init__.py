"""Large universes: clusters of points grown along matches, with no m×d matrix."""
