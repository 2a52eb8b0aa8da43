"""The emulation engine: the only file that imports Unicorn, and the place where its traps are kept shut.

Engine choices, each for a reason that was reproduced:

- The CPU model is set explicitly and ``UC_MODE_MCLASS`` never is: the latter silently replaces the model.
- ARM state and PowerPC run on the virtual TLB, whose fill callback maps data without execute permission: stores then
  stay on the engine's fast path. Thumb runs on the CPU's own TLB: a virtual-TLB miss inside an IT block corrupts the
  block's remaining predicates.
- No memory hook is ever installed, not even for faults: they are wrong inside IT blocks, blind to store-multiple on
  PowerPC, and the mere presence of a fault hook halves the engine's speed.
- Translations are flushed whenever hooks change: the engine does not apply a new hook to code it has translated.
- ARM's ``yield`` gives the core to another thread of the engine, of which there is none: it stops the engine behind the
  instruction, as an invalid one. The run goes on from there.
"""

from __future__ import annotations

import ctypes
import os
import re
import threading
from collections.abc import Callable, Iterable, Mapping
from queue import SimpleQueue

from unicorn import Uc, UcError, arm_const, ppc_const, unicorn_const
from unicorn.unicorn_py3.unicorn import uclib

from wcet_probe.emu.guest_registers import ARM_FLAGS, register_names
from wcet_probe.emu.memory import PAGE_BYTES, Region
from wcet_probe.errors import UsageError
from wcet_probe.model.target import Fpu, Isa, Target

_ARCHITECTURE = {
    Isa.ARM: (unicorn_const.UC_ARCH_ARM, unicorn_const.UC_MODE_ARM),
    Isa.THUMB: (unicorn_const.UC_ARCH_ARM, unicorn_const.UC_MODE_THUMB),
    Isa.POWERPC: (unicorn_const.UC_ARCH_PPC, unicorn_const.UC_MODE_PPC32),
}
_PPC_MSR_FLOATING_POINT = 1 << 13
_CPACR_COPROCESSORS_10_11 = 0xF << 20
_FPEXC_ENABLE = 1 << 30
_STOP_AGAIN_SECONDS = 0.01
"""A stop that comes before the engine has begun to run is lost: it is told again until it has stopped."""
_XPSR_THUMB = 1 << 24
_YIELDS: Mapping[Isa, tuple[bytes, ...]] = {
    Isa.THUMB: (bytes.fromhex("10bf"), bytes.fromhex("aff30180")),
    Isa.ARM: tuple((cond << 28 | 0x0320_F001).to_bytes(4, "little") for cond in range(15)),
    Isa.POWERPC: (),
}
"""The encodings of ``yield``, of all conditions."""
_MAKE_CARRY = bytes.fromhex("3000ffff")
_FLAGS = frozenset({*ARM_FLAGS, "xer_so", "xer_ov", "xer_ca"})
_IDLE_THREADS: list[SimpleQueue[Callable[[], None]]] = []
# A process that was forked has none of its parent's threads.
os.register_at_fork(after_in_child=_IDLE_THREADS.clear)


class EngineFault(Exception):  # noqa: N818  (a fault of the guest, turned into an error by the machine)
    """The engine stopped the guest: its own words for why, and whether memory may be the cause."""

    def __init__(self, words: str, *, is_access: bool = True) -> None:
        super().__init__(words)
        self.is_access = is_access


class Engine:
    """One Unicorn instance with a target's CPU model and a guest's regions mapped."""

    def __init__(self, target: Target, regions: Iterable[Region], fill_callback: int, fill_user: int) -> None:
        architecture, mode = _ARCHITECTURE[target.isa]
        if target.big_endian:
            mode |= unicorn_const.UC_MODE_BIG_ENDIAN
        self._isa = target.isa
        regions = tuple(regions)
        self._scratch = next((region for region in regions if region.name == "return"), None)
        self._hooks: list[ctypes.c_size_t] = []
        self._installed: tuple[int | None, int | None, int] = (None, None, 0)
        self._uc = Uc(architecture, mode)
        self._uc.ctl_set_cpu_model(_cpu_model(target))
        if self._isa is not Isa.POWERPC:  # which has pages of 4 KiB anyway
            self._uc.ctl_set_page_size(PAGE_BYTES)
        together = {region.pages: [one for one in regions if one.pages == region.pages] for region in regions}
        self._constant: list[tuple[Region, bytes]] = []
        for shared in together.values():
            pages, permissions = shared[0].pages, unicorn_const.UC_PROT_READ
            if any(region.writable for region in shared):
                permissions |= unicorn_const.UC_PROT_WRITE
                self._constant += [(region, _content(region)) for region in shared if not region.writable]
            if not all(region.writable for region in shared):
                permissions |= unicorn_const.UC_PROT_EXEC
            pointer = ctypes.c_char.from_buffer(shared[0].buffer, pages.base_address - shared[0].origin)
            self._uc.mem_map_ptr(pages.base_address, pages.size_bytes, permissions, ctypes.addressof(pointer))
        if self._isa is not Isa.THUMB:
            self._uc.ctl_set_tlb_mode(unicorn_const.UC_TLB_VIRTUAL)
            self._add_hook(unicorn_const.UC_HOOK_TLB_FILL, fill_callback, fill_user)
            self._hooks.clear()
        if self._isa is Isa.POWERPC:
            self._uc.reg_write(ppc_const.UC_PPC_REG_MSR, _PPC_MSR_FLOATING_POINT)
        elif target.fpu is not Fpu.NONE:
            self._uc.reg_write(arm_const.UC_ARM_REG_C1_C0_2, _CPACR_COPROCESSORS_10_11)
            self._uc.reg_write(arm_const.UC_ARM_REG_FPEXC, _FPEXC_ENABLE)

    @property
    def program_counter(self) -> int:
        """Where the guest is."""
        return self.read_register("pc")

    def read_register(self, name: str) -> int:
        """Value of the register ``name``."""
        return int(self._uc.reg_read(register_id(self._isa, name))) & 0xFFFFFFFF

    def write_register(self, name: str, value: int) -> None:
        """Set the register ``name``."""
        self._uc.reg_write(register_id(self._isa, name), value)

    def set_hooks(self, block: int | None, instruction: int | None, user: int) -> None:
        """Have the native callbacks ``block`` and ``instruction`` called, and no others; None removes."""
        if (block, instruction, user) == self._installed:
            return
        self._installed = (block, instruction, user)
        for hook in self._hooks:
            uclib.uc_hook_del(self._uc._uch, hook)  # noqa: SLF001
        self._hooks.clear()
        if block is not None:
            self._add_hook(unicorn_const.UC_HOOK_BLOCK, block, user)
        if instruction is not None:
            self._add_hook(unicorn_const.UC_HOOK_CODE, instruction, user)
        self._uc.ctl_flush_tb()

    def guest_registers(self) -> dict[str, int]:
        """The registers that translated code knows, by their names there, as a call finds them.

        A call begins without a carry on PowerPC, whose flags the engine does not give away, and without flags in Thumb
        code, where each run of the engine begins so. The ABIs leave them undefined there.
        """
        names = register_names(self._isa)
        found = {name: self.read_register(name) for name in names if name not in _FLAGS}
        status = self.read_register("cpsr") if self._isa is Isa.ARM else 0
        return found | {name: status >> ARM_FLAGS.get(name, 0) & 1 for name in names if name in _FLAGS}

    def take_over(self, registers: Mapping[str, int], it_state: int = 0) -> None:
        """Go on with the ``registers`` of translated code; in Thumb code in the IT block of ``it_state``."""
        if self._isa is Isa.POWERPC:
            self._set_carry(registers["xer_ca"])
        for name in register_names(self._isa):
            if name not in _FLAGS:
                self.write_register(name, registers[name])
        status = sum(registers[name] << bit for name, bit in ARM_FLAGS.items() if name in registers)
        if self._isa is Isa.THUMB:
            self.write_register("xpsr", _XPSR_THUMB | status | (it_state & 3) << 25 | (it_state >> 2) << 10)
        elif self._isa is Isa.ARM:
            mask = sum(1 << bit for bit in ARM_FLAGS.values())
            self.write_register("cpsr", self.read_register("cpsr") & ~mask | status)

    def _set_carry(self, carry: int) -> None:
        """Have the guest set its carry, by ``addic r0, r0, -1``: the engine's XER is without it."""
        installed = self._installed
        self.set_hooks(None, None, 0)
        self.write_register("r0", carry)
        if self._scratch is None:
            raise EngineFault("there is no room for an instruction of the engine's own")
        address = self._scratch.extent.base_address
        offset = address - self._scratch.origin
        before = self._scratch.buffer[offset : offset + len(_MAKE_CARRY)]
        self._scratch.buffer[offset : offset + len(_MAKE_CARRY)] = _MAKE_CARRY
        self._uc.ctl_flush_tb()
        self._uc.emu_start(address, address + len(_MAKE_CARRY))
        self._scratch.buffer[offset : offset + len(_MAKE_CARRY)] = before
        self.set_hooks(*installed)

    def saved(self) -> object:
        """All registers, for ``restore``."""
        return self._uc.context_save()

    def restore(self, registers: object) -> None:
        """Give all registers back what they were when ``saved`` was asked."""
        self._uc.context_restore(registers)

    def run_to_either(self, begin: int, until: int, other: int, *, goes_on: bool) -> bool:
        """As ``run``, but stop at ``other``, too, before what is there is executed; whether it was there.

        Raises:
            EngineFault: as ``run``.
        """
        # No exit of the engine: one at the start of a page needs the page before, which may not be there.
        stop = self._uc.hook_add(unicorn_const.UC_HOOK_CODE, lambda uc, *_: uc.emu_stop(), begin=other, end=other)
        self._uc.ctl_flush_tb()
        try:
            self.run(begin, until, goes_on=goes_on)
        finally:
            self._uc.hook_del(stop)
            self._uc.ctl_flush_tb()
        return self.program_counter == other

    def run(self, begin: int, until: int, *, goes_on: bool = False) -> None:
        """Run from ``begin`` until control reaches ``until``; where it ``goes_on`` with the flags as they are.

        Raises:
            EngineFault: the guest did what the engine or the memory map does not allow.
        """
        if self._isa is Isa.THUMB and not goes_on:  # a fault inside an IT block left its predicates behind
            self.write_register("xpsr", _XPSR_THUMB)
        failures: list[Exception] = []
        ended, stopped = _held_lock(), _held_lock()

        def start() -> None:
            try:
                self._run_over_yields(begin, until)
            except Exception as error:  # noqa: BLE001  (is raised below, where the caller is)
                failures.append(error)
            finally:
                ended.release()

        # In a thread of its own, so that this one hears an interrupt while the guest runs, however long that is.
        thread = _idle_thread()
        try:
            thread.put(start)
            ended.acquire()
        except BaseException:
            # What comes after the guest in this thread tells that it has ended, or was never begun.
            thread.put(stopped.release)
            while not stopped.acquire(timeout=_STOP_AGAIN_SECONDS):
                self._uc.emu_stop()
            raise
        finally:
            _IDLE_THREADS.append(thread)
        for failure in failures:
            if not isinstance(failure, UcError):
                raise failure
            raise EngineFault(str(failure), is_access=failure.errno != unicorn_const.UC_ERR_EXCEPTION) from failure
        # Within a page the engine allows all or nothing. Runs that are observed are checked access by access.
        if any(_content(region) != content for region, content in self._constant):
            raise EngineFault("the guest wrote to its code or constants")

    def _run_over_yields(self, begin: int, until: int) -> None:
        """Run until ``until``, or until something stops the engine that is no ``yield``.

        What is invalid stops the engine where it stands, perhaps behind a ``yield`` that was not executed.
        """
        hooks: dict[int, int] = {}
        executed: set[int] = set()
        try:
            while True:
                try:
                    self._uc.emu_start(begin | (self._isa is Isa.THUMB), until)
                except UcError as error:
                    begin = self.program_counter
                    size = self._yield_before(begin) if error.errno == unicorn_const.UC_ERR_INSN_INVALID else 0
                    if not size or (begin in hooks and begin not in executed):
                        raise
                    executed.discard(begin)
                    if begin not in hooks:
                        hooks[begin] = self._uc.hook_add(
                            unicorn_const.UC_HOOK_CODE,
                            lambda _, address, size, __: executed.add(address + size),
                            begin=begin - size,
                            end=begin - size,
                        )
                        self._uc.ctl_flush_tb()
                    if begin != until:
                        continue
                return
        finally:
            for hook in hooks.values():
                self._uc.hook_del(hook)
            if hooks:
                self._uc.ctl_flush_tb()

    def _yield_before(self, address: int) -> int:
        """The size of the ``yield`` that stands before ``address``, or 0."""
        read = self._uc.mem_read
        sizes = (len(one) for one in _YIELDS[self._isa] if bytes(read(address - len(one), len(one))) == one)
        return next(sizes, 0)

    def _add_hook(self, kind: int, callback: int, user: int) -> None:
        hook = ctypes.c_size_t()
        status = uclib.uc_hook_add(
            self._uc._uch,  # noqa: SLF001  (the wrapper takes Python callbacks only)
            ctypes.byref(hook),
            kind,
            ctypes.c_void_p(callback),
            ctypes.c_void_p(user),
            ctypes.c_uint64(1),
            ctypes.c_uint64(0),
        )
        if status:
            raise EngineFault(str(UcError(status)))
        self._hooks.append(hook)


def _held_lock() -> threading.Lock:
    lock = threading.Lock()
    lock.acquire()
    return lock


def _idle_thread() -> SimpleQueue[Callable[[], None]]:
    """A thread that calls what is put into its queue: one that has nothing to do, or a new one.

    To begin a thread takes ten times as long as to wake one, and longer than most calls of a guest.
    """
    if _IDLE_THREADS:
        return _IDLE_THREADS.pop()
    calls: SimpleQueue[Callable[[], None]] = SimpleQueue()
    threading.Thread(target=_serve, args=(calls,), daemon=True).start()
    return calls


def _serve(calls: SimpleQueue[Callable[[], None]]) -> None:
    while True:
        calls.get()()


def _content(region: Region) -> bytes:
    start = region.extent.base_address - region.origin
    return region.buffer[start : start + region.extent.size_bytes]


def register_id(isa: Isa, name: str) -> int:
    """The engine's id of the register ``name`` (``r0`` … ``r31``, ``lr``, ``pc``, on ARM ``cpsr``)."""
    if isa is Isa.POWERPC:
        return int(getattr(ppc_const, "UC_PPC_REG_" + re.sub(r"^r(?=\d)", "", name).upper()))
    return int(getattr(arm_const, "UC_ARM_REG_" + name.upper()))


def register_read_address() -> int:
    """Address of the engine's function that reads a register, for native callers."""
    return _function_address("uc_reg_read")


def stop_address() -> int:
    """Address of the engine's function that stops a run, for native callers."""
    return _function_address("uc_emu_stop")


def _function_address(name: str) -> int:
    return ctypes.cast(getattr(uclib, name), ctypes.c_void_p).value or 0


def _cpu_model(target: Target) -> int:
    module = ppc_const if target.isa is Isa.POWERPC else arm_const
    model = getattr(module, target.emulator_model, None)
    if model is None:
        message = f"the engine has no CPU model {target.emulator_model!r}; correct emulator_model of {target.name}."
        raise UsageError(message)
    return int(model)
