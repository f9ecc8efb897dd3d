"""The pages of docs/evidence: ``python -m benchmarks.evidence --help``."""
