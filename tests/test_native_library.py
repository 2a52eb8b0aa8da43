"""A native core that was not built, or is of another version, is told in one sentence."""

import pytest

from wcet_probe.errors import WcetProbeError
from wcet_probe.native_library import native_library

CORES = [
    ("wcet_probe.analyzer", "native/_run.so", "wp_run_abi_version"),
    ("wcet_probe.emu", "_native.so", "wp_abi_version"),
]


@pytest.mark.parametrize(("package", "file", "version_of"), CORES)
def test_a_core_that_is_missing_or_another_one_is_told(package, file, version_of):
    with pytest.raises(WcetProbeError, match="of another version; install the package again so that it is rebuilt"):
        native_library(package, file, version_of, 0)
    with pytest.raises(WcetProbeError, match=f"of {package} is missing; install the package again so that it is built"):
        native_library(package, f"other/{file}", version_of, 0)
