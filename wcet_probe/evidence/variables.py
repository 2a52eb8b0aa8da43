"""Which registers hold variables, for the checker: asked only where a fact counts how often a condition holds."""

from __future__ import annotations

from wcet_probe.build.image import variable_locations
from wcet_probe.certificate.facts.asserted import Asserted
from wcet_probe.model.image import Image, VariableLocation


def variables_of(image: Image, asserted: Asserted) -> tuple[VariableLocation, ...]:
    """Where variables are in all functions of ``image``, as its debug information says; none where no fact asks.

    Raises:
        ImageError: damaged debug information.
    """
    sums = (dict(fact.content.get("sum", {})) for fact in asserted.of("flow"))
    if not any(str(term).startswith("then ") for own in sums for term in own):
        return ()
    return variable_locations(image, [name for name, symbol in image.symbols.items() if symbol.is_function])
