"""Products of matrices in one thread."""

from __future__ import annotations

from functools import cache
from typing import TypeVar

import numpy as np
import numpy.typing as npt
from threadpoolctl import threadpool_limits

Floating = TypeVar("Floating", bound=np.floating)


def product(left: npt.NDArray[Floating], right: npt.NDArray[Floating]) -> npt.NDArray[Floating]:
    """`left` @ `right`, (..., rows, inner) and (..., inner, columns), by the BLAS in the thread that asks."""
    _use_one_thread()
    return np.asarray(left @ right)


@cache
def _use_one_thread() -> None:
    """From now on the BLAS of this process starts no threads of its own.

    They wait for each other at every product, which on a busy machine takes many times as long as multiplying; and the last digits of a
    product of single-precision numbers depend on how many threads there are, so that an interval would depend on the machine.
    """
    threadpool_limits(limits=1, user_api="blas")
