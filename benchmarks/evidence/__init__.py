"""The pages of docs/evidence: ``python -m benchmarks.evidence --help`` (``make evidence PAGE=…``)."""
