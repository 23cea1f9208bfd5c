"""Where reference data lies that is not part of the repository: networks, peers' results, cases.

`TILEWRIGHT_SHARED` names the folder; without it a folder `shared` beside the repository serves, and
tests that need what is not there skip.
"""

import json
import os
from pathlib import Path
from typing import Any

import pytest

REPOSITORY = Path(__file__).resolve().parents[1]
REFERENCE_DATA = Path(os.environ.get("TILEWRIGHT_SHARED", REPOSITORY.parent / "shared")).resolve()
ABSENT = "the folder of reference data is not here (set TILEWRIGHT_SHARED)"


def reference_cases(kind: str) -> list[Any]:
    """What a compiler in use did with small cases of one kind, as values of a parameter."""
    file = REFERENCE_DATA / "oracle" / "vpux_cases.json"
    if not file.is_file():
        return [pytest.param({}, marks=pytest.mark.skip(reason=ABSENT))]
    found = json.loads(file.read_text("utf-8"))["cases"]
    return [pytest.param(case, id=case["id"]) for case in found if case["kind"] == kind]
