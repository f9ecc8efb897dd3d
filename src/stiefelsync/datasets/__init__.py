"""Problems to try and to test with: random ones with a known answer, and the house sequence."""

from stiefelsync.datasets.house import house
from stiefelsync.datasets.scene import scene
from stiefelsync.datasets.synthetic import synthetic

__all__ = ["house", "scene", "synthetic"]
