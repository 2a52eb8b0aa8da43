# SPDX-License-Identifier: 0BSD
"""What a check takes on trust, in one place: `wcet-probe verify` prints it, and the documentation holds it."""

from __future__ import annotations

TRUSTED = (
    ("instructions", "wcet_probe.isa.decode with Capstone: texts, registers, accesses and targets of instructions"),
    ("ELF", "wcet_probe.build.image with pyelftools: segments, symbols, code, line table, variables, compilers"),
    ("code", "is not written while it runs, whatever segment it stands in"),
    ("segments that are not writable", "keep their content, unless a store is known to go there, which is refused"),
    ("target table", "targets/*.toml and its reading, wcet_probe.isa.timing: cycles of each instruction"),
    ("meaning of instructions", "the checker's own transfer functions, held against an emulator by tests"),
    ("facts", "what files of facts say is true, and holds for the code of the lines that they name"),
    ("sources", "the binary was compiled of them, where facts name lines or marks in them"),
    ("assumptions", "each that is listed holds in every call"),
    ("Python", "the interpreter and its standard library"),
)
"""Part, and what is believed of it."""
