"""What tests of several files here share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.covering import one_of

from .conformance import Conformance
from .host_compiler import CC, compile_or_fail
from .tlsf_host import SOURCES, WARNINGS, macros

COMPILED_ANEW = (
    "test_sanitizers_find_nothing",
    "test_32_bit_layout",
    "test_no_line_or_branch_stays_unexecuted",
    "test_guest",
)


def pytest_itemcollected(item: pytest.Item) -> None:
    """Of an allocator's further builds the ordinary run has one of the tests that compile it anew, a class another one.

    The others are campaigns.
    """
    own, name = getattr(item, "cls", None), getattr(item, "originalname", "")
    if name not in COMPILED_ANEW or own is None or not issubclass(own, Conformance):
        return
    tested = [each for each in vars(item.module).values() if isinstance(each, type) and issubclass(each, Conformance)]
    first = next(each for each in tested if getattr(each, "subject", None) and each.subject.name == own.subject.name)
    if own is not first and COMPILED_ANEW.index(name) not in one_of(COMPILED_ANEW, own.__qualname__):
        item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session")
def build_tlsf(tmp_path_factory: pytest.TempPathFactory) -> Callable[[int, int], Path]:
    """Builds each shared library of TLSF once a session."""
    folder = tmp_path_factory.mktemp("tlsf")
    built: dict[tuple[int, int], Path] = {}

    def build(sl_bits: int, bit_search: int) -> Path:
        output = folder / f"tlsf-{sl_bits}-{bit_search}.so"
        if (sl_bits, bit_search) not in built:
            freestanding = ["-O2", "-shared", "-fPIC", "-ffreestanding", "-nostdlib"]
            compile_or_fail(
                [*CC, *WARNINGS, *freestanding, *macros(sl_bits, bit_search), *SOURCES, "-o", str(output)], folder
            )
            built[sl_bits, bit_search] = output
        return built[sl_bits, bit_search]

    return build
