"""What an embedder gave, as vectors of length one. Needs numpy; touches nothing."""

from __future__ import annotations

import base64
import binascii
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from pytest_golden.learning.vectors.model import VectorsError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Units: TypeAlias = NDArray[np.float32]

_ON_DISK = np.dtype("<f4")


def read_units(given: Any, count: int) -> Units:
    """Give a row of length one for each of `count` texts; a vector of zeros stays one.

    Raises:
        VectorsError: it is not so many rows of finite numbers.
    """
    try:
        rows = np.asarray(given)
    except (TypeError, ValueError) as error:
        raise VectorsError(f"gave no rows of equal length ({error})") from None
    if rows.dtype.kind not in "iuf":
        raise VectorsError(f"gave no numbers ({type(given).__name__} of {rows.dtype})")
    if rows.ndim != 2 or len(rows) != count or not rows.shape[1]:
        texts = "1 text" if count == 1 else f"{count} texts"
        raise VectorsError(f"gave numbers of shape {rows.shape} for {texts}, and not a vector each")
    rows = rows.astype(np.float64)
    if not np.isfinite(rows).all():
        raise VectorsError("gave NaN or infinite numbers")
    # By the largest first: the square of a large number would be infinite.
    rows /= _never_zero(np.abs(rows).max(axis=1, keepdims=True))
    rows /= _never_zero(np.linalg.norm(rows, axis=1, keepdims=True))
    return rows.astype(np.float32)


def write_vector(unit: Units) -> str:
    """Write a vector as it is kept: 32-bit floats, little-endian, in Base64."""
    return base64.b64encode(unit.astype(_ON_DISK).tobytes()).decode("ascii")


def read_vector(text: str) -> Units | None:
    """Read what `write_vector` wrote; None for anything else."""
    try:
        unit = np.frombuffer(base64.b64decode(text, validate=True), _ON_DISK)
    except (binascii.Error, ValueError):
        return None
    return unit.astype(np.float32, copy=False) if len(unit) and np.isfinite(unit).all() else None


def _never_zero(sizes: Any) -> Any:
    return np.where(sizes == 0, 1.0, sizes)
