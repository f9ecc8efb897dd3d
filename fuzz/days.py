"""Cells and units of days: sound files of every program that is read, and reading what becomes of them."""

from __future__ import annotations

import io as streams
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy import io as scipy_io
from scipy import sparse

from stiefelsync import datasets
from stiefelsync.io.cells import read_matrix, read_sessions, read_unitmatch
from stiefelsync.registration import Candidates, Session

__all__ = [
    "PICKLE_WORDS",
    "as_units",
    "caiman_seeds",
    "cellreg_seeds",
    "mask_seeds",
    "part_seeds",
    "place_part",
    "score_seeds",
    "session",
    "suite2p_folder",
    "unitmatch_folder",
    "units",
]

PICKLE_WORDS = (
    b"cnumpy\ndtype\n", b"cbuiltins\neval\n", b"cos\nsystem\n", b"R", b"b", b"u.", b"O8", b"S9999",
    b"r\xff\xff\xff\x7f", b"\x8c\x05ypix", b"'|O'", b"(99999999999,)", b"(-1,)", b"'<f8'", b"True",
)  # fmt: skip
Parts = dict[str, bytes]


def _npy(value: Any) -> bytes:
    made = streams.BytesIO()
    np.save(made, value, allow_pickle=True)
    return made.getvalue()


def suite2p_folder(folder: Path) -> Parts:
    """Return the files of a small plane."""
    shutil.rmtree(folder / "mouse", ignore_errors=True)
    datasets.sessions(1, 3, shape=(64, 64), folder=folder / "mouse", rng=0)
    plane = folder / "mouse" / "day01" / "suite2p" / "plane0"
    return {f"plane0/{path.name}": path.read_bytes() for path in sorted(plane.iterdir())}


def unitmatch_folder(_: Path) -> Parts:
    """Return the files of a folder of UnitMatch with six units."""
    p, recording, _truth = datasets.units(2, 3, rng=0)
    table = "ID1,ID2,RecSes 1,RecSes 2\n" + "".join(f"{n}.0,0.0,{r + 1}.0,1.0\n" for n, r in enumerate(recording))
    about = {"session_id": recording, "original_ids": np.arange(6)[:, None], "good_units": [np.arange(3)]}
    return {
        "MatchProb.npy": _npy(p),
        "ClusInfo.pickle": pickle.dumps(about, protocol=4),
        "MatchTable.csv": table.encode(),
    }


def part_seeds(made: Callable[[Path], Parts]) -> Callable[[Path], list[bytes]]:
    """Return seeds that are each a file of a folder, after a byte for its number among them."""
    return lambda folder: [bytes([number]) + data for number, data in enumerate(made(folder).values())]


def place_part(made: Callable[[Path], Parts]) -> Callable[[Path, bytes], None]:
    """Return what makes a sound folder in which one file is the given one."""
    sound: Parts = {}

    def place(path: Path, data: bytes) -> None:
        if not sound:
            sound.update(made(path.parent))
        spot = data[0] % len(sound) if data else 0
        shutil.rmtree(path, ignore_errors=True)
        for number, (name, whole) in enumerate(sound.items()):
            # A pickle is looked at where there is no table beside it only.
            if name == "MatchTable.csv" and number != spot:
                continue
            (path / name).parent.mkdir(parents=True, exist_ok=True)
            (path / name).write_bytes(data[1:] if number == spot else whole)

    return place


def _footprints() -> np.ndarray[Any, np.dtype[np.float64]]:
    masks = np.zeros((3, 8, 9))
    for cell in range(3):
        masks[cell, 2 * cell : 2 * cell + 3, cell : cell + 4] = np.arange(1, 13).reshape(3, 4)
    return masks


def cellreg_seeds(folder: Path) -> list[bytes]:
    """Return footprints for CellReg as arrays and as cells of sparse matrices, of MATLAB 5 and 7.3."""
    import h5py

    path, masks, made = folder / "hand.mat", _footprints(), []
    cells = np.empty((1, 3), dtype=object)
    cells[0] = [sparse.csc_matrix(mask) for mask in masks]
    for variable in (masks, masks.astype(np.uint8), cells):
        for compressed in (False, True):
            scipy_io.savemat(path, {"allFiltersMat": variable}, do_compression=compressed)
            made.append(path.read_bytes())
    for referred in (False, True):
        with h5py.File(path, "w", userblock_size=512) as file:
            if not referred:
                file.create_dataset("allFiltersMat", data=masks.T, chunks=(3, 4, 3), compression="gzip")
            else:
                held = file.create_dataset("f", (3, 1), dtype=h5py.ref_dtype)
                for at, matrix in enumerate(cells[0]):
                    group = file.create_group(f"#refs#/{chr(97 + at)}")
                    group["data"], group["ir"] = matrix.data, matrix.indices.astype("u8")
                    group["jc"] = matrix.indptr.astype("u8")
                    group.attrs["MATLAB_sparse"] = np.uint64(matrix.shape[0])
                    held[at, 0] = group.ref
        begin = b"MATLAB 7.3 MAT-file, Platform: GLNXA64".ljust(124) + b"\x00\x02IM"
        made.append(begin + path.read_bytes()[len(begin) :])
    return made


def caiman_seeds(folder: Path) -> list[bytes]:
    """Return results of CaImAn with all components and with those accepted."""
    import h5py

    masks, path, made = _footprints(), folder / "hand.hdf5", []
    A = sparse.csc_matrix(masks.transpose(2, 1, 0).reshape(-1, len(masks)))
    for accepted in (b"NoneType", np.array([0, 2])):
        with h5py.File(path, "w") as file:
            for name in ("data", "indices", "indptr"):
                file[f"estimates/A/{name}"] = getattr(A, name)
            file["estimates/A/shape"] = np.array(A.shape)
            file["dims"], file["estimates/dims"] = np.array(masks.shape[1:]), b"NoneType"
            file["estimates/idx_components"], file["estimates/Cn"] = accepted, np.ones(masks.shape[1:])
        made.append(path.read_bytes())
    return made


def mask_seeds(folder: Path) -> list[bytes]:
    """Return label images and footprints as NPY, NPZ and TIFF."""
    from PIL import Image

    masks = _footprints()
    labels = (masks > 0).argmax(axis=0).astype(np.uint16)
    archive, image = folder / "hand.npz", folder / "hand.tif"
    np.savez(archive, labels=labels)
    pages = [Image.fromarray(mask.astype(np.uint8)) for mask in masks]
    pages[0].save(image, save_all=True, append_images=pages[1:])
    made = [_npy(labels), _npy(masks), archive.read_bytes(), image.read_bytes()]
    Image.fromarray(labels).save(image)
    return [*made, image.read_bytes()]


def score_seeds(folder: Path) -> list[bytes]:
    """Return a matrix of scores with its sessions."""
    p, recording, _ = datasets.units(2, 3, rng=0)
    np.savez(folder / "hand.npz", scores=p, session=recording)
    return [(folder / "hand.npz").read_bytes()]


def session(path: Path) -> list[list[Session]]:
    """Read one session, all of its detections."""
    return read_sessions([path], iscell=False)


def units(path: Path) -> Candidates:
    """Read a folder of UnitMatch."""
    return read_unitmatch(path).candidates


def as_units(path: Path) -> Candidates:
    """Read a matrix of scores."""
    return read_matrix(path).candidates
