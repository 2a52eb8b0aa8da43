"""First-fit: conformance, the model, the checker against broken heaps."""

from functools import partial

import pytest

from .broken_lists import BROKEN, Breakage, assert_noticed
from .conformance import Conformance, Host, Subject
from .tagged_models import FirstFit


class TestFirstFit(Conformance):
    subject = Subject("first-fit", model=FirstFit)

    @pytest.mark.parametrize("breakage", BROKEN, ids=lambda b: b.name)
    def test_check_names_the_violation(self, host: Host, breakage: Breakage) -> None:
        assert_noticed(host, "first_fit_control", breakage)


class TestFirstFitOfP02(Conformance):
    subject = Subject(
        "first-fit",
        {"alignment": 4, "minimum-block": 16, "split-threshold": 64},
        model=partial(FirstFit, alignment=4, threshold=64),
    )
