"""First-fit: conformance, the model, the checker against broken heaps."""

from functools import partial

from .broken_lists import ListFitConformance
from .conformance import Conformance, Subject
from .tagged_models import FirstFit


class TestFirstFit(ListFitConformance):
    subject = Subject("first-fit", model=FirstFit)
    control = "first_fit_control"


class TestFirstFitOfP02(Conformance):
    subject = Subject(
        "first-fit",
        {"alignment": 4, "minimum-block": 16, "split-threshold": 64},
        model=partial(FirstFit, alignment=4, threshold=64),
    )
