"""What the checker is told of an image by its debug information: registers of variables, and whose code is shared."""

from __future__ import annotations

from wcet_probe.build.compilers import unshared_functions
from wcet_probe.build.image import variable_locations
from wcet_probe.certificate.facts.asserted import Asserted
from wcet_probe.model.image import Image, VariableLocation


def variables_of(image: Image, asserted: Asserted) -> tuple[VariableLocation, ...]:
    """Where variables are in all functions of ``image``, as its debug information says; none where no fact asks.

    Raises:
        ImageError: damaged debug information.
    """
    sums = (dict(fact.content.get("sum", {})) for fact in asserted.of("flow"))
    has_conditions = any(str(term).startswith("then ") for own in sums for term in own)
    if not (has_conditions or _has_pragmas(asserted) or asserted.of("loop")):
        return ()
    return variable_locations(image, [name for name, symbol in image.symbols.items() if symbol.is_function])


def unshared_of(image: Image, asserted: Asserted) -> frozenset[int]:
    """Where functions begin of which a piece of code is of one place of the source; none where no fact asks.

    Raises:
        ImageError: damaged debug information.
    """
    is_asked = _has_pragmas(asserted) or asserted.of("flow") or asserted.of("infeasible")
    return unshared_functions(image) if is_asked else frozenset()


def _has_pragmas(asserted: Asserted) -> bool:
    return any("loopbound" in text for text in (asserted.sources or {}).values())
