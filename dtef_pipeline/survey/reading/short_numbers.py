"""Numbers of a few characters (`40`, `12.5`, `0.125`), read by arithmetic on whole columns of them: eight bytes of text as one integer.

Reading eight digits with three multiplications: D. Lemire, "Quickly parsing eight digits" (2018). The digits are an integer below
2^53 and the divisor a power of ten below 10^22, both exact, so that their quotient is the float nearest to what is written (W. Clinger,
"How to read floating point numbers accurately", 1990): what any correct reader of decimals gives, to the last bit.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

WORD_BYTES = 8
"""Bytes that can be read behind each start of a number."""
_ONE = np.uint64(1)
_ZEROS = np.uint64(0x3030303030303030)
_HIGH_HALVES = np.uint64(0xF0F0F0F0F0F0F0F0)
_SIXES = np.uint64(0x0606060606060606)
_POINT = np.uint64(ord(".") ^ ord("0"))
_BYTES_OF_PAIRS = np.uint64(0x000000FF000000FF)
_HUNDREDS = np.uint64(100 + (1_000_000 << 32))
_UNITS = np.uint64(1 + (10_000 << 32))
_PLACE_OF_POINT = np.uint64(0x1020304050607080)
_DIVISOR = np.array([1, 1e7, 1e6, 1e5, 1e4, 1e3, 1e2, 1e1, *[np.nan] * 8])
"""By the place of the point: 0 for none. 8 is one at the end, which is no number, nor is anything above."""


class ShortNumbers(NamedTuple):
    """Values in the shape of the starts; the flags say which texts are no short numbers (their values mean nothing)."""

    values: npt.NDArray[np.float64]
    others: npt.NDArray[np.bool_]


def short_numbers(data: npt.NDArray[np.uint8], starts: npt.NDArray[np.int64], ends: npt.NDArray[np.int64]) -> ShortNumbers:
    """The numbers that stand from `starts` to `ends` in `data`, which goes on for at least WORD_BYTES bytes after each start.

    A short number is 1 to 8 characters: digits, with at most one point that has digits on both sides.
    """
    length = ends - starts
    # The last character becomes the highest byte; below the first one are zeros, as if zeros were written before it.
    shift = (8 * (WORD_BYTES - length)).view(np.uint64)
    words = np.ndarray(len(data) - WORD_BYTES + 1, np.dtype("<u8"), data, strides=(1,))
    word = words[starts]
    word ^= _ZEROS
    word <<= shift
    point = word & _HIGH_HALVES
    point >>= np.uint64(4)  # the lowest bit of the byte of a point, where all else are digits
    word ^= point * _POINT
    before_point = point - np.minimum(point, _ONE)
    wrong = _no_digits(word)
    wrong |= word & (point * np.uint64(0xF))  # something else than a point
    wrong |= point & (before_point | (_ONE << shift))  # a second point, or one before all digits
    before_point &= word
    word ^= before_point
    before_point <<= np.uint64(8)
    word |= before_point
    point *= _PLACE_OF_POINT
    point >>= np.uint64(60)
    values = _integer(word)
    values /= _DIVISOR.take(point.view(np.int64))
    others = wrong != 0
    others |= (length - 1).view(np.uint64) >= WORD_BYTES
    others |= np.isnan(values)
    return ShortNumbers(values, others)


def _no_digits(word: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Not 0 where a byte is above 9."""
    found = word + _SIXES
    found |= word
    found &= _HIGH_HALVES
    return found


def _integer(digits: npt.NDArray[np.uint64]) -> npt.NDArray[np.float64]:
    """The eight decimal digits, one per byte from the lowest, as one number."""
    pairs = digits * np.uint64(10)
    digits >>= np.uint64(8)
    pairs += digits
    second = pairs >> np.uint64(16)
    pairs &= _BYTES_OF_PAIRS
    pairs *= _HUNDREDS
    second &= _BYTES_OF_PAIRS
    second *= _UNITS
    pairs += second
    pairs >>= np.uint64(32)
    return pairs.view(np.int64).astype(np.float64)
