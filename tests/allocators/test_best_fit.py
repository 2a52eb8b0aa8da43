"""Best-fit: conformance, the model, the checker against broken heaps."""

from functools import partial

import pytest

from .broken_lists import BROKEN, Breakage, assert_noticed
from .conformance import Conformance, Host, Subject
from .tagged_models import BestFit


class TestBestFit(Conformance):
    subject = Subject("best-fit", model=BestFit)

    @pytest.mark.parametrize("breakage", BROKEN, ids=lambda b: b.name)
    def test_check_names_the_violation(self, host: Host, breakage: Breakage) -> None:
        assert_noticed(host, "best_fit_control", breakage)


class TestBestFitOfP02(Conformance):
    subject = Subject(
        "best-fit",
        {"alignment": 4, "minimum-block": 16, "split-threshold": 64},
        model=partial(BestFit, alignment=4, threshold=64),
    )
