"""What is linked to a suite's programs: each compiler's own routines where they are for the core's ABI."""

import shutil

import pytest

from bench.routines import routines
from bench.suite import FLAGS, SCRIPT
from wcet_probe.build.compilation import _call as call
from wcet_probe.build.toolchain import find_toolchain
from wcet_probe.catalog.lookup import load_target

COPIES = """\
struct big { int words[40]; };
double divided(double a, int b) { return a / b; }
float scaled(float a, unsigned b) { return a * b; }
long long quotient(long long a, long long b) { return a / b; }
void copied(struct big *to, const struct big *from) { *to = *from; }
int all_main(void) { return 0; }
"""


@pytest.mark.parametrize(
    ("compiler", "name"),
    [
        ("arm-none-eabi-gcc", "cortex-m4"),
        ("arm-none-eabi-gcc", "arm926ej-s"),
        ("powerpc-linux-gnu-gcc", "mpc603e"),
    ],
)
def test_floating_point_division_and_copies_link(compiler, name, tmp_path):
    if compiler != "zig" and shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    target = load_target(name)
    toolchain = find_toolchain(compiler, target)
    flags, memory = target.compiler_flags[toolchain.family], target.memory_map
    (tmp_path / "all.c").write_text(COPIES)
    (tmp_path / "all.ld").write_text(SCRIPT.format(code=memory.code.base_address, data=memory.data.base_address))
    call([*toolchain.compile, *flags, *FLAGS, "-O2", "-c", "all.c", "-o", "all.o"], tmp_path)
    entry = ("--entry=all_main",) if toolchain.family == "clang" else (*flags, "-Wl,--entry=all_main")
    last = routines(tmp_path, toolchain, target)
    call([*toolchain.link, *entry, "-T", "all.ld", "all.o", *last, "-o", "all.elf"], tmp_path)
    assert (tmp_path / "all.elf").read_bytes()[:4] == b"\x7fELF"
