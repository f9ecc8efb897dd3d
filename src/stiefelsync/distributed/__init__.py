"""Problems larger than one process or one machine.

Parts on disk, parts on Dask workers, row blocks of W.
"""

from stiefelsync.distributed.operator import operator, row_blocks
from stiefelsync.distributed.sources import ColmapSource, open_source
from stiefelsync.distributed.synchronise import GROUP, Labelling, synchronise

__all__ = ["GROUP", "ColmapSource", "Labelling", "open_source", "operator", "row_blocks", "synchronise"]
