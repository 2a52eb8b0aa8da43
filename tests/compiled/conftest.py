"""What tests of the two engines have in common."""

from tests.emu.conftest import _quickly_compiled

__all__ = ["_quickly_compiled"]
