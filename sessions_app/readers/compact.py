"""Maps from names to numbers for millions of rows: 24 to 32 bytes a name, where a dictionary of texts takes 200 and more."""

from array import array
from collections.abc import Hashable, Iterator

NONE = -1
_LEAST = 1 << 4


class CompactMap:
    """Name → number from 0 up to 2³¹ − 2. Names can't be read back: only their hashes are kept.

    Hashes have 64 bits and a secret that is new in every process: two names of one source share one with a chance of
    one in thirty million, at a million names.
    """

    def __init__(self) -> None:
        self._hashes = array("q", bytes(8 * _LEAST))  # 0: free
        self._numbers = array("i", bytes(4 * _LEAST))
        self._mask = _LEAST - 1
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def __contains__(self, name: Hashable) -> bool:
        return self.get(name) != NONE

    def get(self, name: Hashable) -> int:
        """The number of a name; `NONE` (-1) where it has none."""
        wanted = hash(name) or 1
        hashes, mask = self._hashes, self._mask
        place = wanted & mask
        while known := hashes[place]:
            if known == wanted:
                return self._numbers[place]
            place = (place + 1) & mask
        return NONE

    def set(self, name: Hashable, number: int) -> None:
        """Gives a name its number, in place of the one that it had."""
        if 2 * self._count > self._mask:
            self._grow()
        self._put(hash(name) or 1, number)

    def number_of(self, name: Hashable) -> int:
        """The number of a name; the next one (they count from 0) where it has none yet."""
        number = self.get(name)
        if number == NONE:
            number = self._count
            self.set(name, number)
        return number

    def _put(self, wanted: int, number: int) -> None:
        hashes, mask = self._hashes, self._mask
        place = wanted & mask
        while (known := hashes[place]) and known != wanted:
            place = (place + 1) & mask
        self._count += not known
        hashes[place], self._numbers[place] = wanted, number

    def _grow(self) -> None:
        before = self._pairs()
        size = 4 * (self._mask + 1) if self._mask < 1 << 20 else 2 * (self._mask + 1)
        self._hashes = array("q", bytes(8 * size))
        self._numbers = array("i", bytes(4 * size))
        self._mask, self._count = size - 1, 0
        for wanted, number in before:
            self._put(wanted, number)

    def _pairs(self) -> Iterator[tuple[int, int]]:
        return ((known, number) for known, number in zip(self._hashes, self._numbers, strict=True) if known)
