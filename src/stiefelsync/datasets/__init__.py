"""Problems to try and to test with: random ones with a known answer, a drawn castle, and the house sequence."""

from stiefelsync.datasets import shapes
from stiefelsync.datasets.cameras import camera_scene, cameras
from stiefelsync.datasets.house import house
from stiefelsync.datasets.imaging import sessions
from stiefelsync.datasets.records import LinkedRecords, records
from stiefelsync.datasets.scene import scene
from stiefelsync.datasets.spikes import units
from stiefelsync.datasets.synthetic import synthetic
from stiefelsync.datasets.twins import twins

__all__ = [
    "LinkedRecords",
    "camera_scene",
    "cameras",
    "house",
    "records",
    "scene",
    "sessions",
    "shapes",
    "synthetic",
    "twins",
    "units",
]
