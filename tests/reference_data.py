"""Where reference data lies that is not part of the repository: networks, peers' results, cases.

`TILEWRIGHT_SHARED` names the folder; without it a folder `shared` beside the repository serves, and
tests that need what is not there skip.
"""

import os
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
REFERENCE_DATA = Path(os.environ.get("TILEWRIGHT_SHARED", REPOSITORY.parent / "shared")).resolve()
ABSENT = "the folder of reference data is not here (set TILEWRIGHT_SHARED)"
