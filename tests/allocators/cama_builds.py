"""CAMA's builds, one of them for the host and loaded; random operations with the answers of the model."""

from __future__ import annotations

import ctypes
import random
from enum import IntEnum
from pathlib import Path

from wcet_probe.catalog.lookup import load_allocator
from wcet_probe.scenarios.cama.heap import Cama, Geometry

from .conformance import WARNINGS, WORD
from .host_compiler import CC, compile_or_fail

HERE = Path(__file__).parent
CAMA = HERE.parents[1] / "allocators" / "cama"
SOURCES = [str(CAMA / "cama.c"), str(CAMA / "cama_check.c")]
DRIVER = str(HERE / "cama_driver.c")
PARAMETERS = {
    "default": {},
    "one class a row": {"tl": 1, "sl": 14, "cache-sets": 64},
    "reserved in the middle": {"descriptor-first-set": 32, "descriptor-sets": 64, "tl": 2},
    "long lines": {"line-bytes": 64, "descriptor-first-set": 16, "sl": 8},
}
INIT, MALLOC, FREE, INIT_AT = range(4)
NONE = 0xFFFFFFFF


class Violation(IntEnum):
    """enum cama_violation."""

    HEAP_SOUND = 0
    NO_HEAP = 1
    BAD_AREA = 2
    BAD_DESCRIPTOR = 3
    BAD_LEFT = 4
    BAD_SIZE = 5
    BAD_ADJACENT_FREE = 6
    BAD_BACK_POINTER = 7
    BAD_TAG = 8
    BAD_CHAIN = 9
    BAD_SPARE = 10
    BAD_AVAILABLE = 11
    BAD_LIST_ADDRESS = 12
    BAD_LIST_FREE_BIT = 13
    BAD_LIST_CLASS = 14
    BAD_LIST_LINK = 15
    BAD_VECTOR = 16
    BAD_FREE_COUNT = 17
    BAD_FREE_MEMBERS = 18


def macros(values):
    allocator = load_allocator("cama", values)
    return [f"-D{p.macro}={allocator.values[p.name]}" for p in allocator.parameters]


def geometry_of(values, word_bytes=WORD):
    return Geometry.of_values(load_allocator("cama", values).values, word_bytes)


class Descriptor(ctypes.Structure):
    """struct cama_descriptor."""

    _fields_ = tuple((name, ctypes.c_size_t) for name in ("left", "right", "prev", "next", "start", "size_and_free"))


class Host:
    """A build, loaded; blocks are offsets in the arena, which starts a cache page."""

    def __init__(self, folder, values):
        self.geometry = geometry_of(values)
        flags = ["-std=c11", "-O2", "-shared", "-fPIC", "-ffreestanding", "-nostdlib", f"-I{CAMA}"]
        compile_or_fail([*CC, *WARNINGS, *flags, *macros(values), *SOURCES, "-o", "host.so"], folder)
        self.library = ctypes.CDLL(str(folder / "host.so"))
        self.library.cama_init.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
        self.library.cama_malloc.argtypes = [ctypes.c_size_t, ctypes.c_uint]
        self.library.cama_malloc.restype = ctypes.c_void_p
        self.library.cama_free.argtypes = [ctypes.c_void_p]
        self.library.cama_free.restype = None
        at = ctypes.addressof(ctypes.c_char.in_dll(self.library, "cama_control"))
        names = ("arena", "end", "top", "spare", "fresh", "available", "newest", "oldest")
        control = type("Control", (ctypes.Structure,), {"_fields_": [(name, ctypes.c_size_t) for name in names]})
        self.control = control.from_address(at + self.geometry.first_set * self.geometry.line_bytes)
        self.sentinel = ctypes.addressof(self.control) + 8 * WORD
        self.tables = ctypes.addressof(ctypes.c_char.in_dll(self.library, "cama_tables"))

    def init(self, heap_bytes):
        page = self.geometry.page_bytes
        self.memory = ctypes.create_string_buffer(heap_bytes + page)
        self.arena = -(-ctypes.addressof(self.memory) // page) * page
        self.heap_bytes = heap_bytes
        return self.library.cama_init(self.arena, heap_bytes)

    def malloc(self, size, cache_set):
        address = self.library.cama_malloc(size, cache_set)
        return None if address is None else address - self.arena

    def free(self, offset):
        self.library.cama_free(self.arena + offset)

    def check(self):
        return Violation(self.library.cama_check())

    def contents(self):
        return ctypes.string_at(self.arena, self.heap_bytes) + bytes(self.control)

    def word(self, address):
        return ctypes.c_size_t.from_address(address)

    def head(self, cache_set, number):
        return self.word(self.geometry.word_address(self.tables, self.geometry.vector_words + number, cache_set))

    def descriptor(self, start):
        return Descriptor.from_address(self.word(self.arena + start - WORD).value)


def random_steps(seed, geometry, heap_bytes, count):
    """Operations as (code, size or slot, set), and the model's answers: starts, or None."""
    draw, model = random.Random(seed), Cama(geometry, heap_bytes)
    favoured = [draw.randrange(geometry.sets) for _ in range(3)]
    slots, live = [], []
    for _ in range(count):
        if live and draw.random() < 0.45:
            slot = live.pop(draw.randrange(len(live)))
            model.free(slots[slot])
            yield FREE, slot, slots[slot], None
            continue
        size = draw.choice((draw.randrange(1, 60), draw.randrange(1, 400), int(2 ** draw.uniform(0, 13))))
        cache_set = draw.choice((*favoured, geometry.set_of(model.top), geometry.set_of(model.top)))
        start = model.malloc(size, cache_set)
        if start is not None:
            live.append(len(slots))
            slots.append(start)
        yield MALLOC, size, cache_set, start
    for slot in draw.sample(live, len(live)):
        model.free(slots[slot])
        yield FREE, slot, slots[slot], None
