"""What every test relies on: Hypothesis draws the same examples everywhere and never races a clock."""

import os

from hypothesis import settings

# HYPOTHESIS_PROFILE=explore looks for new counterexamples; a test run must not depend on luck.
settings.register_profile("repeatable", deadline=None, derandomize=True, print_blob=True)
settings.register_profile("explore", deadline=None, max_examples=2000, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeatable"))
