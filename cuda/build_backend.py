"""What pip calls: hatchling, and the metadata without a build.

Under pip, hatchling leaves the metadata to a whole build of the wheel, since a hook might change
it: pip would sit at "Preparing metadata" while nvcc compiles. Ours changes only the wheel's tag.
"""

import os

# hatchling.build looks for this variable, by which it knows pip.
_tracker = os.environ.pop("PIP_BUILD_TRACKER", None)
from hatchling.build import *  # noqa: E402

if _tracker is not None:
    os.environ["PIP_BUILD_TRACKER"] = _tracker
