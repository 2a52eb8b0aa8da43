"""Half-fit: conformance, the model."""

from functools import partial

from .conformance import Conformance, Subject
from .tagged_models import HalfFit


class TestHalfFit(Conformance):
    subject = Subject("half-fit", model=HalfFit)


class TestHalfFitByTable(Conformance):
    subject = Subject(
        "half-fit",
        {"alignment": 4, "split-threshold": 64, "bit-search": 1},
        model=partial(HalfFit, alignment=4, threshold=64),
    )
