"""Native cores that are built into the package, through ctypes."""

from __future__ import annotations

import ctypes
from importlib.util import find_spec
from pathlib import Path

from wcet_probe.errors import WcetProbeError


def native_library(package: str, file: str, version_of: str, version: int) -> ctypes.CDLL:
    """The library ``file`` in the folder of ``package``.

    Args:
        package: by its full name.
        file: relative to its folder.
        version_of: the function of the library that tells its version.
        version: that is wanted.

    Raises:
        WcetProbeError: it was not built, or is of another version than this package.
    """
    spec = find_spec(package)
    homes = [Path(home) for home in (spec.submodule_search_locations or ())] if spec else []
    found = [home / file for home in homes if (home / file).is_file()]
    if not found:
        raise WcetProbeError(f"the native core of {package} is missing; install the package again so that it is built.")
    library = ctypes.CDLL(str(found[0]))
    if getattr(library, version_of)() != version:
        raise WcetProbeError(
            f"the native core of {package} is of another version; install the package again so that it is rebuilt."
        )
    return library
