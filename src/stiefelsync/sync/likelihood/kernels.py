"""Compiled sweeps over objects: the same steps as the class State takes in NumPy, on its own arrays."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from stiefelsync._kernels.library import address

if TYPE_CHECKING:
    from stiefelsync.sync.likelihood.gauss_seidel import State

__all__ = ["Kernels"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_INTEGER, _REAL, _ARRAY = ctypes.c_int64, ctypes.c_double, ctypes.c_void_p


class _State(ctypes.Structure):
    """The struct State of ``_kernels/refine.c``."""

    _fields_ = [
        *((name, _INTEGER) for name in ("k", "d", "complete")),
        *((name, _ARRAY) for name in ("offsets", "indptr", "indices", "partners", "near_first", "near_object")),
        *((name, _ARRAY) for name in ("right", "seen", "size", "size_first", "size_object", "size_value")),
        *((name, _ARRAY) for name in ("popular", "logit")),
        *((name, _REAL) for name in ("fresh", "apart")),
        *(("extent", _ARRAY), ("births", _REAL)),
        *((name, _ARRAY) for name in ("labels", "O", "holders", "shared", "near", "reach")),
    ]


class Kernels:
    """Compiled sweeps over the labels of a :class:`~stiefelsync.sync.likelihood.gauss_seidel.State`, changed in place.

    Labels come out as those of the NumPy code, bit for bit.
    """

    def __init__(self, library: Any, state: State) -> None:
        self.library, self.kept = library, _arrays(state)
        rates, table = state.rates, state.table
        self.state = _State(
            **{name: address(array) for name, array in self.kept.items()},
            k=table.matchings.n_objects,
            d=table.d,
            complete=int(table.complete),
            fresh=0.0 if rates.sight is None else rates.by_level[1],
            apart=float(np.log(table.d)),
            births=rates.births,
        )

    def refine_sweep(self, calm: NDArray[np.bool_]) -> bool:
        """Re-label every restless object that is not calm, (k,), in turn; return whether a label changed."""
        return bool(self._checked(self.library.refine_sweep(ctypes.byref(self.state), ctypes.c_void_p(address(calm)))))

    def draw_sweep(self, order: Ints, noise: Floats) -> None:
        """Draw the labels of every object with points; `order`, (n, times, d), `noise`, (n, times, d // 2)."""
        at = (ctypes.c_void_p(address(array)) for array in (order, noise))
        self._checked(self.library.draw_sweep(ctypes.byref(self.state), _INTEGER(order.shape[1]), *at))

    @staticmethod
    def _checked(code: int) -> int:
        if code < 0:
            raise MemoryError("no memory for a sweep over the labels")
        return code


def _arrays(state: State) -> dict[str, Any]:
    """Return the arrays of the struct by name, of the types that it wants, None for what does not apply."""
    rates, table = state.rates, state.table
    first, objects = table.neighbour_rows
    dense = isinstance(rates.size, np.ndarray)
    arrays: dict[str, tuple[Any, Any]] = {
        "offsets": (table.matchings.offsets, np.int64),
        "indptr": (table.indptr, np.int32),
        "indices": (table.indices, np.int32),
        "partners": (table.partners, np.int64),
        "near_first": (first, np.int64),
        "near_object": (objects, np.int64),
        "right": (rates.right, np.float64),
        "seen": (state.half, np.float64),
        "size": (rates.size if dense else None, np.float64),
        "size_first": (None if dense else rates.size.indptr, np.int32),
        "size_object": (None if dense else rates.size.indices, np.int32),
        "size_value": (None if dense else rates.size.data, np.float64),
        "popular": (state.popular if np.ndim(state.popular) else None, np.float64),
        "logit": (None if rates.sight is None else rates.by_level[0], np.float64),
        "extent": (rates.extent, np.float64),
        **{name: (getattr(state, name), np.float64) for name in ("O", "holders", "shared", "near")},
        **{name: (getattr(state, name), np.int64) for name in ("labels", "reach")},
    }
    found = {name: x if x is None else np.ascontiguousarray(x, dtype) for name, (x, dtype) in arrays.items()}
    # What sweeps change must be the arrays of the state themselves.
    assert all(found[name] is getattr(state, name) for name in ("labels", "O", "holders", "shared", "near", "reach"))
    return found
