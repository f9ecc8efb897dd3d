"""The solver and the synchroniser as differentiable PyTorch functions (extra ``torch``)."""

from stiefelsync.errors import MissingExtraError

try:
    import torch as _torch  # noqa: F401
except ModuleNotFoundError as error:
    raise MissingExtraError("stiefelsync.torch", "torch", "torch") from error

from stiefelsync.torch.layer import Synchronise, synchronise, universe_basis
from stiefelsync.torch.losses import cycle_consistency_loss
from stiefelsync.torch.objects import hard_labels, pairwise, to_blocks, to_matrix
from stiefelsync.torch.sinkhorn import sinkhorn
from stiefelsync.torch.solve import rotate, sparse_stiefel, two_stage

__all__ = [
    "Synchronise",
    "cycle_consistency_loss",
    "hard_labels",
    "pairwise",
    "rotate",
    "sinkhorn",
    "sparse_stiefel",
    "synchronise",
    "to_blocks",
    "to_matrix",
    "two_stage",
    "universe_basis",
]
