"""What is known of lines in a cache on either of two ways, for the certificate: those that must be there, and balances.

Words: must analysis, younger set, certificate (docs/explanation/glossary.md).

*Soundness:* none is claimed. The checker tests what a certificate says.
"""

from __future__ import annotations

from wcet_probe.certificate.caches.residents import NOTHING, Balance, Bound, Must, Residents, YoungerSet, union
from wcet_probe.certificate.caches.steps import Spot


def joined(residents: Residents, spot: Spot, a: YoungerSet, b: YoungerSet) -> YoungerSet:
    """What may have been accessed since ``spot`` on either of two ways: by name, or by number if those are many.

    *Soundness:* none is claimed.
    """
    either, both = union(a, b), a.names & b.names
    others = (YoungerSet(one.names - both, one.others) for one in (a, b))
    fewer = YoungerSet(both, max(residents.age(spot, one) for one in others))
    is_either = residents.kept(spot, either) is not None or residents.kept(spot, fewer) is None
    return either if is_either else fewer


def joined_must(residents: Residents, a: Must, b: Must) -> Must:
    """The lines that must be in the cache on both ways.

    *Soundness:* none is claimed.
    """
    return {spot: joined(residents, spot, younger, b[spot]) for spot, younger in a.items() if spot in b}


def joined_balance(residents: Residents, a: Balance, b: Balance) -> Balance:
    """What is left on both ways.

    *Soundness:* none is claimed.
    """
    if isinstance(a, str) or isinstance(b, str):
        return b if isinstance(a, str) else a
    if not isinstance(a, Bound) or not isinstance(b, Bound) or a.base != b.base:
        return None
    spent: dict[int, YoungerSet | None] = {}
    for offset in sorted({*a.spent, *b.spent}):
        one, other = residents.left(a, offset), residents.left(b, offset)
        if one is None or other is None:
            spent[offset] = None
        elif not isinstance(one, YoungerSet) or not isinstance(other, YoungerSet):
            spent[offset] = one if isinstance(one, YoungerSet) else other if isinstance(other, YoungerSet) else NOTHING
        else:
            spot = Spot(a.base, offset, min(a.granule_bytes, b.granule_bytes))
            spent[offset] = joined(residents, spot, one, other)
    return Bound(a.base, min(a.granule_bytes, b.granule_bytes), spent)
