"""Other simulators beside the observing machine: the same replay on each, in millions of instructions per second.

cachegrind simulates the caches of a host build (its instructions are the host's), qemu's user mode runs a build for the
target, plain or with its stock cache plugin. They are measured where they are installed; else the row says so. Last
comes the engine with a hook in Python for each instruction, as its tutorials show it.
"""

from __future__ import annotations

import re
import resource
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from wcet_probe.build.compilation import COMMON_FLAGS, GUEST_FILES
from wcet_probe.build.program import Program
from wcet_probe.build.toolchain import packaged_program
from wcet_probe.catalog.resources import folder
from wcet_probe.emu.machine import Machine
from wcet_probe.model.scenario import Trace
from wcet_probe.model.target import CacheConfig, Isa

_HOOKED_OPERATIONS = 2000
NOT_INSTALLED = "not installed"
HEAP_BYTES = 4 << 20
_PLUGINS = ("/usr/lib/qemu/plugins", "/usr/lib/qemu", "/usr/local/lib/qemu", "/usr/libexec/qemu")
_CONVENTIONS = {
    "i386": (("--target=i386-linux", "-march=pentium4"), "movl $1, %eax\\n xorl %ebx, %ebx\\n int $0x80"),
    Isa.ARM: ((), "mov r7, #1\\n mov r0, #0\\n svc #0"),
    Isa.THUMB: (("-mthumb",), "movs r7, #1\\n movs r0, #0\\n svc #0"),
    Isa.POWERPC: ((), "li 0, 1\\n li 3, 0\\n sc"),
}
_START = """
#include <stdint.h>
uint32_t wp_replay(const void *operation, uint32_t count, void **slots);
{returns} {init}({arguments});
static char heap[{heap_bytes}] __attribute__((aligned(64)));
static void *slots[{slots}];
extern const char operations[];
__asm__(".data\\n.balign 8\\n.globl operations\\noperations: .incbin \\"operations.bin\\"\\n.text\\n");
__attribute__((used)) void run(void)
{{
    {init}((void *)heap, sizeof heap);
    wp_replay(operations, {count}, slots);
    __asm__ volatile("{leave}");
}}
__asm__(".globl _start\\n{thumb}_start: {stack}{branch} run\\n");
"""


@dataclass(frozen=True, slots=True)
class Peer:
    """What a simulator took: CPU seconds, its start included, for so many instructions; or why there is nothing."""

    name: str
    instructions: int = 0
    seconds: float = 0.0
    why_not: str = ""

    @property
    def rate(self) -> str:
        """Millions of instructions in a second, or why there is no such number."""
        return self.why_not or (f"{self.instructions / self.seconds / 1e6:.1f}" if self.seconds else "too fast to tell")


def peers(program: Program, trace: Trace, executed: int, plugin: Path | None = None) -> tuple[Peer, ...]:
    """Each simulator on the ``trace``; ``executed``: instructions of the guest in one replay.

    Parameters:
        program: an allocator on a target, with the caches that are to be simulated.
        trace: operations; each simulator replays all of them, but for the hooks in Python.
        executed: counted by the machine; qemu does not count.
        plugin: qemu's ``libcache.so``, where it is not in the usual folders.
    """
    with tempfile.TemporaryDirectory(prefix="wcet-probe-peers-") as name:
        return (
            _cachegrind(program, trace, Path(name)),
            *_qemu(program, trace, executed, Path(name), plugin),
            _hooked(program, trace),
        )


def _cachegrind(program: Program, trace: Trace, here: Path) -> Peer:
    title = "cachegrind on a host build (i386)"
    tool = shutil.which("valgrind")
    if tool is None:
        return Peer(title, why_not=NOT_INSTALLED)
    elf = _elf(program, trace, here, "i386")
    options = ["--tool=cachegrind", "--cache-sim=yes", "--cachegrind-out-file=/dev/null"]
    caches = {"I1": program.target.icache, "D1": program.target.dcache}
    options += [f"--{name}={_geometry(cache)}" for name, cache in caches.items() if cache]
    try:
        seconds, text = _timed([tool, *options, str(elf)])
    except RuntimeError as error:
        return Peer(title, why_not=f"failed: {error}")
    found = re.search(r"I\s+refs:\s+([\d,]+)", text)
    if found is None:
        return Peer(title, why_not="failed: " + (text.strip().splitlines() or ["no output"])[-1])
    return Peer(title, int(found[1].replace(",", "")), seconds)


def _qemu(program: Program, trace: Trace, executed: int, here: Path, plugin: Path | None) -> tuple[Peer, Peer]:
    titles = ("qemu-user, plain", "qemu-user, its cache plugin")
    isa = program.target.isa
    tool = shutil.which("qemu-ppc" if isa is Isa.POWERPC else "qemu-arm")
    if tool is None:
        return Peer(titles[0], why_not=NOT_INSTALLED), Peer(titles[1], why_not=NOT_INSTALLED)
    elf = _elf(program, trace, here, isa)
    plugin = plugin or next((p for home in _PLUGINS if (p := Path(home) / "libcache.so").is_file()), None)
    found = []
    for title, options in zip(titles, ([], ["-plugin", f"{plugin},{_plugin_caches(program)}"]), strict=True):
        if options and plugin is None:
            found.append(Peer(title, why_not=NOT_INSTALLED))
            continue
        try:
            seconds, _ = _timed([tool, *options, str(elf)])
            found.append(Peer(title, executed, seconds))
        except RuntimeError as error:
            found.append(Peer(title, why_not=f"failed: {error}"))
    return found[0], found[1]


def _hooked(program: Program, trace: Trace) -> Peer:
    from unicorn import unicorn_const  # noqa: PLC0415  (the peer is the bare wrapper)

    columns = (trace.kinds, trace.slots, trace.sizes_bytes, trace.cache_sets)
    few = Trace(*(column[:_HOOKED_OPERATIONS] for column in columns), trace.slot_count)
    counted = [0]

    def count(_engine: object, _address: int, _size: int, _user: object) -> None:
        counted[0] += 1

    with Machine(program.image, program.target, program.instructions, program.costs, HEAP_BYTES) as machine:
        machine.call(program.allocator.entry_points["init"], machine.heap.base_address, HEAP_BYTES)
        engine = machine._engine._uc  # noqa: SLF001
        hook = engine.hook_add(unicorn_const.UC_HOOK_CODE, count)
        start = time.process_time()
        machine.replay(few)
        seconds = time.process_time() - start
        engine.hook_del(hook)
    return Peer("Unicorn, a hook in Python counts", counted[0], seconds)


def _geometry(cache: CacheConfig) -> str:
    return f"{cache.sets * cache.ways * cache.line_bytes},{cache.ways},{cache.line_bytes}"


def _plugin_caches(program: Program) -> str:
    given = [("i", program.target.icache), ("d", program.target.dcache)]
    return ",".join(
        f"{letter}cachesize={c.sets * c.ways * c.line_bytes},{letter}assoc={c.ways},{letter}blksize={c.line_bytes}"
        for letter, c in given
        if c
    )


def _elf(program: Program, trace: Trace, here: Path, kind: str) -> Path:
    """The allocator with the replay as a program without a library, for the host or for the target."""
    allocator, compiler = program.allocator, packaged_program()
    conventions, leave = _CONVENTIONS[kind]
    own = program.target.compiler_flags["clang"] if kind != "i386" else ()
    system = [flag.replace("-none-eabi", "-linux") for flag in own]
    entry = allocator.entry_points
    define: Sequence[str] = [f"-D{p.macro}={allocator.values[p.name]}" for p in allocator.parameters]
    define = [*define, f"-DWP_MALLOC={entry['malloc']}", f"-DWP_FREE={entry['free']}"]
    texts = dict(allocator.sources) | {f: (folder("guest") / f).read_text("utf-8") for f in GUEST_FILES}
    texts["start.c"] = _START.format(
        init=entry["init"], returns="int", arguments="void *, uint32_t", heap_bytes=HEAP_BYTES, slots=trace.slot_count,
        count=len(trace), leave=leave, thumb=".thumb_func\\n" if kind == Isa.THUMB else "",
        stack="addi 1, 1, -64\\n " if kind == Isa.POWERPC else "", branch="jmp" if kind == "i386" else "b",
    )  # fmt: skip
    order = "big" if program.target.big_endian and kind != "i386" else "little"
    rows = zip(trace.kinds, trace.slots, trace.sizes_bytes, trace.cache_sets, strict=True)
    (here / "operations.bin").write_bytes(b"".join(word.to_bytes(4, order) for row in rows for word in row))
    for file, text in texts.items():
        (here / file).parent.mkdir(parents=True, exist_ok=True)
        (here / file).write_text(text, "utf-8")
    objects = []
    include = compiler.with_name("lib") / "include"
    for number, unit in enumerate(file for file in texts if file.endswith(".c")):
        objects.append(f"{kind}{number}.o")
        flags = [*system, *conventions, *COMMON_FLAGS, "-w", "-nostdinc", "-isystem", str(include), *define]
        _run([str(compiler), "clang", *flags, "-c", unit, "-o", objects[-1]], here)
    elf = here / f"{kind}.elf"
    _run([str(compiler), "ld.lld", "-static", "--strip-debug", *objects, "-o", str(elf)], here)
    return elf


def _run(command: Sequence[str], here: Path) -> None:
    subprocess.run(command, cwd=here, check=True, capture_output=True)


def _timed(command: Sequence[str]) -> tuple[float, str]:
    """CPU seconds of a command and what it wrote.

    Raises:
        RuntimeError: it failed.
    """
    clock: Callable[[], float] = lambda: sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2])  # noqa: E731
    start = clock()
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError((done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1])
    return clock() - start, done.stdout + done.stderr
