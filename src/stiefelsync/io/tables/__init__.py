"""Tables of records: scored pairs in, clusters out, as text or Parquet."""

from stiefelsync.io.tables import clusters, edges

__all__ = ["clusters", "edges"]
