"""What the rules of the checker leave open is tested without trial runs, which refute much of it (`test_trials.py`)."""

from contextlib import nullcontext
from unittest.mock import patch

import pytest

from wcet_probe.certificate.check import _Check


@pytest.fixture(autouse=True, scope="module")
def rules_alone(request):
    is_about_trials = request.module.__name__.endswith("test_trials")
    with nullcontext() if is_about_trials else patch.object(_Check, "try_runs"):
        yield
