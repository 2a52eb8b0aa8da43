"""Which compiler has made which functions of an image, as the debug information says."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from functools import lru_cache

from elftools.dwarf.die import DIE
from elftools.elf.elffile import ELFFile

from wcet_probe.build.image import DAMAGED, dwarf_of, live_functions
from wcet_probe.errors import ImageError
from wcet_probe.identity import Same
from wcet_probe.model.image import Image

_CLANG = b"clang version"
_IMAGES = 4
"""So many images keep what was read of them: each function of a proof asks anew."""


def functions_of_clang(image: Image) -> frozenset[int]:
    """Where the functions begin that Clang has compiled.

    Raises:
        ImageError: damaged debug information.
    """
    return _functions(Same(image), _is_of_clang)


def unshared_functions(image: Image) -> frozenset[int]:
    """Where the functions begin that Clang has compiled, or GCC without optimisation, as its options say.

    In these a piece of code is of one place of the source, or has no line.

    Raises:
        ImageError: damaged debug information.
    """
    return _functions(Same(image), _is_unshared)


@lru_cache(maxsize=2 * _IMAGES)
def _functions(one_image: Same[Image], is_meant: Callable[[DIE], bool]) -> frozenset[int]:
    image = one_image.value
    try:
        file = ELFFile(io.BytesIO(image.elf))
        if not file.has_dwarf_info():
            return frozenset()
        live = live_functions(dwarf_of(file), image, {symbol.name for symbol in image.functions})
        return frozenset(int(one.attributes["DW_AT_low_pc"].value) & ~1 for one in live if is_meant(one))
    except DAMAGED as error:
        message = f"the file's functions cannot be read ({str(error) or type(error).__name__}); link it again with -g."
        raise ImageError(message) from error


def _is_of_clang(function: DIE) -> bool:
    return _CLANG in _producer(function)


def _is_unshared(function: DIE) -> bool:
    return _is_of_clang(function) or _is_not_optimised(function)


def _is_not_optimised(function: DIE) -> bool:
    return re.findall(rb" -O(\S*)", _producer(function))[-1:] == [b"0"]


def _producer(function: DIE) -> bytes:
    found = function.cu.get_top_DIE().attributes.get("DW_AT_producer")
    return b"" if found is None else bytes(found.value)
