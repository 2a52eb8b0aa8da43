"""What an ELF file says of the core that it is built for: ARM's build attributes and GNU's section of attributes.

The meaning of ARM's values: Addenda to the ABI for the Arm Architecture, 2023Q3.
"""

from __future__ import annotations

import io
from typing import Literal

from elftools.elf.elffile import ELFFile
from elftools.elf.sections import ARMAttributesSection

from wcet_probe.build.image import DAMAGED
from wcet_probe.errors import ImageError
from wcet_probe.model.image import BuildAttributes

_POWER_ABI_FP = 4
_VLE = 0x10000000
"""SHF_PPC_VLE: the section holds VLE instructions."""

_ARM_ARCHITECTURES = {
    **dict(
        enumerate(("pre-v4", "v4", "v4T", "v5T", "v5TE", "v5TEJ", "v6", "v6KZ", "v6T2", "v6K", "v7", "v6-M", "v6S-M"))
    ),
    **dict(enumerate(("v7E-M", "v8-A", "v8-R", "v8-M.base", "v8-M.main"), 13)),
}
"""By the value of Tag_CPU_arch."""
_ARM_FPUS = {
    0: ("", 0, False),
    1: ("VFPv1", 1, False),
    2: ("VFPv2", 2, False),
    3: ("VFPv3", 3, True),
    4: ("VFPv3-D16", 3, False),
    5: ("VFPv4", 4, True),
    6: ("VFPv4-D16", 4, False),
    7: ("FPv5", 5, True),
    8: ("FPv5-D16", 5, False),
}
"""Name, generation and whether there are 32 double registers, by the value of Tag_FP_arch."""


def build_attributes(elf: bytes) -> BuildAttributes:
    """What the ELF file ``elf`` says of the core that it is built for: the attributes that its tools left in it.

    ARM: the section ``.ARM.attributes`` (Addenda to the ABI for the Arm Architecture, ARM IHI 0045, chapter 3).
    PowerPC: ``.gnu.attributes`` (tag 4, the floating-point ABI, as GNU binutils and GCC write it), and VLE sections.

    Raises:
        ImageError: no ELF, or a damaged section of attributes.
    """
    try:
        file = ELFFile(io.BytesIO(elf))
        return _arm_attributes(file) if file["e_machine"] == "EM_ARM" else _powerpc_attributes(file)
    except DAMAGED as error:
        message = f"the file's build attributes cannot be read ({str(error) or type(error).__name__}); link it again."
        raise ImageError(message) from error


def _arm_attributes(file: ELFFile) -> BuildAttributes:
    section = file.get_section_by_name(".ARM.attributes")
    if not isinstance(section, ARMAttributesSection):
        return BuildAttributes()
    of_file = (one for vendor in section.iter_subsections() for one in vendor.iter_subsubsections("TAG_FILE"))
    tags = {attribute.tag: attribute.value for one in of_file for attribute in one.iter_attributes()}
    number = tags.get("TAG_CPU_ARCH")
    architecture = "" if number is None else _ARM_ARCHITECTURES.get(number, f"architecture number {number}")
    profile = chr(tags.get("TAG_CPU_ARCH_PROFILE", 0))
    if architecture == "v7" and profile in "MRA":
        architecture += f"-{profile}"
    unit = tags.get("TAG_FP_ARCH", 0)
    name, level, wide = _ARM_FPUS.get(unit, (f"floating-point architecture number {unit}", 99, False))
    return BuildAttributes(
        core=str(tags.get("TAG_CPU_NAME", "")).lower(),
        architecture=architecture,
        fpu=f"{name}, single precision" if tags.get("TAG_ABI_HARDFP_USE") == 1 and unit else name,
        fpu_level=level,
        fpu_double=bool(unit) and tags.get("TAG_ABI_HARDFP_USE") != 1,
        fpu_wide=wide,
    )


def _powerpc_attributes(file: ELFFile) -> BuildAttributes:
    variable_length = any(section["sh_flags"] & _VLE for section in file.iter_sections())
    section = file.get_section_by_name(".gnu.attributes")
    unit = _gnu_attribute(section.data(), "little" if file.little_endian else "big", _POWER_ABI_FP) if section else 0
    hard = unit & 3 in {1, 3}
    words = {1: "double precision", 3: "single precision"}
    return BuildAttributes(
        fpu=f"hard floating point, {words[unit & 3]}" if hard else "",
        fpu_level=int(hard),
        fpu_double=hard and unit & 3 == 1,
        variable_length=variable_length,
    )


def _gnu_attribute(data: bytes, order: Literal["little", "big"], wanted: int) -> int:
    """A number of the section ``.gnu.attributes``: vendors, scopes, and tags with their values; 0 where it is not.

    Raises:
        IndexError, ValueError: it is damaged.
    """
    at = 1
    while data[:1] == b"A" and at + 4 < len(data):
        end = at + int.from_bytes(data[at : at + 4], order)
        name = data.index(0, at + 4)
        at, vendor = name + 1, data[at + 4 : name]
        while vendor == b"gnu" and at + 5 <= end:
            scope, scope_end = data[at], at + int.from_bytes(data[at + 1 : at + 5], order)
            at += 5
            while scope == 1 and at < scope_end:
                tag, at = _number(data, at)
                if tag & 1:
                    at = data.index(0, at) + 1
                    continue
                value, at = _number(data, at)
                if tag == wanted:
                    return value
            if scope_end <= at - 5:
                raise ValueError("a scope of no bytes")
            at = scope_end
        if end < at:
            raise ValueError("a vendor of no bytes")
        at = end
    return 0


def _number(data: bytes, at: int) -> tuple[int, int]:
    """A number in LEB128 at ``at``, and where the next one starts."""
    value = shift = 0
    while data[at] & 0x80:
        value, shift, at = value | (data[at] & 0x7F) << shift, shift + 7, at + 1
    return value | data[at] << shift, at + 1
