"""Which allocators have claims to be deduced."""

import pytest

from wcet_probe.cache_sets.claimed import CLAIMED, claimed
from wcet_probe.errors import UsageError


def test_each_has_all_operations():
    for name, own in CLAIMED.items():
        assert claimed(name) is own
        assert own.whole.keys() == {"init", "what the caller writes", "free", "malloc"}


def test_others_are_refused():
    with pytest.raises(UsageError, match="written for cama and half-fit, not for tlsf"):
        claimed("tlsf")
