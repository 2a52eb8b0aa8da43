"""Half-fit for the MPC603e, as it is and changed, and what is deduced of it."""

from functools import cache

from tests.support import images_dir
from wcet_probe.build.program import load_program
from wcet_probe.cache_sets.half_fit_deduction import deduced as deduce
from wcet_probe.cache_sets.half_fit_deduction import geometry_of
from wcet_probe.catalog.lookup import load_allocator, load_target


@cache
def program(target="mpc603e"):
    return load_program(load_allocator("half-fit"), load_target(target), "zig", images_dir())


@cache
def geometry():
    return geometry_of(program())


@cache
def deduced(operation, target="mpc603e"):
    return deduce(program(target), operation)
