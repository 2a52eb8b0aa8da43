"""What tests of several files here share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from .host_compiler import CC, compile_or_fail
from .tlsf_host import SOURCES, WARNINGS, macros


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
