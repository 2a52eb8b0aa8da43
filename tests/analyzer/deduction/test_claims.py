"""Claims are assumed at all terms of their kinds, each once."""

from tests.analyzer.deduction.cama_builds import geometry
from wcet_probe.analyzer.deduction import cama_views as cama
from wcet_probe.analyzer.deduction.cama_claims import claims
from wcet_probe.analyzer.deduction.claims import Named, instances
from wcet_probe.analyzer.deduction.formulas import unknown


def test_instances_are_those_with_the_new_term():
    view, named = cama.view_of(""), Named({})
    one, other = unknown("one"), unknown("other")
    own = claims(geometry())
    first = list(instances(own, view, named, "place", one, made={}))
    second = list(instances(own, view, named.with_term("place", one), "place", other, made={}))
    pairs = sum(claim.kinds == ("place", "place") for claim in own)
    in_one_order = sum(claim.kinds == ("place", "place") and claim.is_symmetric for claim in own)
    assert len(second) == len(first) + 2 * pairs - in_one_order
    assert ("place", one) in named.with_term("place", one)
    assert ("place", one) not in named
