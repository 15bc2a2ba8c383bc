"""Lets tests share what stands beside them."""

import sys
from pathlib import Path

from hypothesis import settings

sys.path.insert(0, str(Path(__file__).parent))

# A busy machine is no fault of an example: how long one takes is not asserted anywhere.
settings.register_profile("xclaw", deadline=None)
settings.load_profile("xclaw")
