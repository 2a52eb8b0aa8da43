"""Which ELF files are bounded on which target: what they say of their core, held against the target's."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.support import assembler, image_of
from wcet_probe.build.build_attributes import build_attributes
from wcet_probe.build.core_fit import check_fit, core_name
from wcet_probe.catalog.lookup import load_target, target_names
from wcet_probe.errors import ImageError, UsageError
from wcet_probe.model.image import BuildAttributes
from wcet_probe.model.target import Isa

TARGETS = [load_target(name) for name in target_names()]
RETURN = {Isa.ARM: "bx lr", Isa.THUMB: "bx lr", Isa.POWERPC: "blr"}


def built_for(name: str, more: str = "") -> BuildAttributes:
    """What a file says that the packaged compiler built for a target's core."""
    target = load_target(name)
    if name == "cortex-m4f":
        more = f"{more}\n.fpu fpv4-sp-d16"
    text = f"{more}\n{assembler({'f': RETURN[target.isa]}, target)}"
    return build_attributes(image_of(text if more else "int f(void) { return 1; }", target, ".s" if more else ".c").elf)


def fit(built: BuildAttributes, name: str) -> str | None:
    return check_fit("it.elf", built, load_target(name), iter(TARGETS))


@pytest.mark.parametrize("name", target_names())
def test_a_file_fits_the_target_that_it_is_built_for(name):
    assert fit(built_for(name), name) is None


@pytest.mark.parametrize(
    ("built", "core", "architecture"),
    [
        ("cortex-m0plus", "cortex-m0plus", "v6S-M"),
        ("cortex-m3", "cortex-m3", "v7-M"),
        ("cortex-m4", "cortex-m4", "v7E-M"),
        ("cortex-m33", "cortex-m33", "v8-M.main"),
        ("cortex-r5", "cortex-r5", "v7-R"),
        ("arm926ej-s", "arm926ej-s", "v5TE"),
    ],
)
def test_the_attributes_of_arm_name_core_and_architecture(built, core, architecture):
    found = built_for(built)
    assert (found.core, found.architecture, found.fpu_level) == (core, architecture, 0)


@pytest.mark.parametrize(
    ("built", "on", "fitting"),
    [
        ("cortex-m4", "cortex-m3", "cortex-m4"),
        ("cortex-m3", "cortex-m0plus", "cortex-m3"),
        ("cortex-m33", "cortex-m4", "cortex-m33"),
        ("cortex-r5", "arm926ej-s", "cortex-r5"),
        ("cortex-m4f", "cortex-m4", "cortex-m4f"),
    ],
)
def test_what_the_core_cannot_execute_is_refused_with_the_targets_that_can(built, on, fitting):
    with pytest.raises(UsageError, match=f"it.elf is built for .*: choose --target {fitting}[ .]") as error:
        fit(built_for(built), on)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("built", "on"),
    [
        ("cortex-m3", "cortex-m4"),
        ("cortex-m0plus", "cortex-m4"),
        ("cortex-m4", "cortex-m7"),
        ("cortex-m4", "cortex-m33"),
    ],
)
def test_what_is_built_for_another_core_is_assumed_to_run_on_this_one(built, on):
    assumed = fit(built_for(built), on)
    assert assumed is not None
    assert assumed.startswith(f"it.elf, built for {built}, ")
    assert on in assumed


def test_a_tool_that_names_no_core_leaves_it_at_the_architecture():
    of_gcc = BuildAttributes(core="7e-m", architecture="v7E-M")
    assert fit(of_gcc, "cortex-m4") is None
    assert fit(of_gcc, "cortex-m7") is None
    with pytest.raises(UsageError, match="choose --target cortex-m4 or cortex-m4f or cortex-m7"):
        fit(of_gcc, "cortex-m3")
    assert fit(BuildAttributes(), "cortex-m0plus") is None


@pytest.mark.parametrize(
    ("built", "fits"),
    [
        (BuildAttributes(fpu="VFPv4-D16", fpu_level=4), {"cortex-m4f", "cortex-m7"}),
        (BuildAttributes(fpu="VFPv3-D16", fpu_level=3, fpu_double=True), {"cortex-m7", "cortex-r5"}),
        (BuildAttributes(fpu="VFPv3", fpu_level=3, fpu_double=True, fpu_wide=True), set()),
        (BuildAttributes(fpu="FPv5-D16", fpu_level=5, fpu_double=True), {"cortex-m7"}),
    ],
)
def test_floating_point_needs_an_fpu_of_its_generation_width_and_registers(built, fits):
    for name in ("cortex-m0plus", "cortex-m3", "cortex-m4", "cortex-m4f", "cortex-m7", "cortex-r5", "arm926ej-s"):
        if name in fits:
            assert fit(built, name) is None
        else:
            with pytest.raises(UsageError, match="FPU"):
                fit(built, name)


def test_floating_point_of_powerpc_is_read_from_the_attributes_of_gnu():
    hard, soft = built_for("mpc603e", ".gnu_attribute 4, 1"), built_for("mpc603e", ".gnu_attribute 4, 2")
    assert (hard.fpu_level, hard.fpu_double, soft.fpu_level) == (1, True, 0)
    assert fit(hard, "mpc755") is None
    assert fit(soft, "e200z6") is None
    with pytest.raises(UsageError, match=r"hard floating point.*e200z6 has no FPU: choose --target mpc603e or mpc755"):
        fit(hard, "e200z6")


def test_variable_length_code_fits_no_target():
    marked = built_for("mpc603e", '.section .vle, "ax", @progbits\n.long 0\n.text')
    assert not marked.variable_length
    with pytest.raises(UsageError, match="executes no VLE code: no target fits"):
        fit(replace(marked, variable_length=True), "e200z6")


def test_a_damaged_section_is_refused():
    with pytest.raises(ImageError, match="link it again"):
        build_attributes(b"\x7fELF")


def test_every_target_names_its_core():
    assert {core_name(target) for target in TARGETS} >= {
        "cortex-m0plus",
        "cortex-m3",
        "cortex-m4",
        "cortex-m33",
        "603e",
    }
