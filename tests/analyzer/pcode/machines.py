"""Lifters of a few instructions each."""

from wcet_probe.analyzer.pcode.lift import Lifter, code_reader
from wcet_probe.model.image import Segment
from wcet_probe.model.target import Isa

BASE = 0x1000


def lifter(isa, code):
    language = {Isa.THUMB: "ARM:LE:32:Cortex", Isa.ARM: "ARM:LE:32:v5t", Isa.POWERPC: "PowerPC:BE:32:default"}[isa]
    return Lifter(language, isa, code_reader([Segment(BASE, code, len(code), writable=False, executable=True)]))


def thumb(*halfwords):
    return lifter(Isa.THUMB, b"".join(halfword.to_bytes(2, "little") for halfword in halfwords))


def arm(word):
    return lifter(Isa.ARM, word.to_bytes(4, "little"))


def lifter_of_v7(word):
    code = word.to_bytes(4, "little")
    segment = Segment(BASE, code, len(code), writable=False, executable=True)
    return Lifter("ARM:LE:32:v7", Isa.ARM, code_reader([segment]))


def powerpc(word):
    return lifter(Isa.POWERPC, word.to_bytes(4, "big"))
