"""Settings that all tests share."""

import os

from hypothesis import settings

# The same examples in every run, so that a failure is the change's and not the day's.
settings.register_profile("ci", derandomize=True, deadline=None, database=None)
# New examples in every run, and many: for a search by hand, HYPOTHESIS_PROFILE=explore.
settings.register_profile("explore", max_examples=2000, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))
