"""Single-threaded matrix products."""

from __future__ import annotations

from functools import cache
from typing import TypeVar

import numpy as np
import numpy.typing as npt
from threadpoolctl import threadpool_limits

Floating = TypeVar("Floating", bound=np.floating)


def product(left: npt.NDArray[Floating], right: npt.NDArray[Floating]) -> npt.NDArray[Floating]:
    """Return `left` @ `right`, (..., rows, inner) and (..., inner, columns), computed by the BLAS in the calling thread."""
    _use_one_thread()
    return np.asarray(left @ right)


@cache
def _use_one_thread() -> None:
    """Limit the BLAS of this process to one thread from now on.

    Its threads wait for each other at every product, which on a busy machine takes many times as long as multiplying; and the last digits
    of single-precision products depend on the number of threads, so an interval would depend on the machine.
    """
    threadpool_limits(limits=1, user_api="blas")
