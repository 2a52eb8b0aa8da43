"""Best-fit: conformance, the model, the checker against broken heaps."""

from functools import partial

from .broken_lists import ListFitConformance
from .conformance import Conformance, Subject
from .tagged_models import BestFit


class TestBestFit(ListFitConformance):
    subject = Subject("best-fit", model=BestFit)
    control = "best_fit_control"


class TestBestFitOfP02(Conformance):
    subject = Subject(
        "best-fit",
        {"alignment": 4, "minimum-block": 16, "split-threshold": 64},
        model=partial(BestFit, alignment=4, threshold=64),
    )
