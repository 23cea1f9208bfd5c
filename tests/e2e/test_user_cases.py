"""Broken machine files: what a user reads, and whether doing what it says mends the file.

The files of the user whose questions this project grew from lie outside the repository, in
`shared/cases`; those in `tests/machine_files` are our own, with the same kinds of fault and more.
"""

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.applied_fixes import Fix, apply_fixes, printed_fixes
from tests.reference_data import ABSENT, REFERENCE_DATA

from tilewright.errors import InputError, Problem
from tilewright.machine.load import check_machine, load_machine, reading_of

Golden = Callable[[str, str], None]

REPOSITORY = Path(__file__).parents[2]
OWN_FILES = REPOSITORY / "tests" / "machine_files"
SHARED_CASES = REFERENCE_DATA / "cases"

USER_CASES = (
    "a3_nodram_v1",
    "a3_nodram_v2",
    "npe8_dram3p",
    "npe8_nodram",
    "q7_seneca_adjusted",
    "q8_dram_sram_rf",
)
MENDED_BY_FIXES = (
    "dram_first",
    "narrow_above_wide",
    "no_ports",
    "no_ports_new",
    "own_above_shared",
    "read_on_write_port",
    "second_operand",
    "swapped_directions",
    "swapped_new",
    "undeclared_port",
    "unfillable_input",
    "weights_from_nowhere",
)
ONLY_WARNINGS = ("duplicate_keys", "on_chip_only", "suspicious")
NEED_THOUGHT = (
    "bare_numbers",
    "bypass_faults",
    "dims_and_sizes",
    "ends_misshapen",
    "ends_unknown",
    "held_by_nobody",
    "in_memory_array",
    "misspelt_key",
    "mixed_dialects",
    "names_of_others",
    "negative_size",
    "no_array",
    "sharing_faults",
    "two_kinds_of_core",
    "unknown_dimension",
    "unknown_operand",
    "wrong_types",
)
REFUSED = ("empty", "not_yaml")

with_shared_cases = pytest.mark.skipif(not SHARED_CASES.is_dir(), reason=ABSENT)


def problems(path: Path) -> list[Problem]:
    return check_machine(reading_of(path))


def printed(found: list[Problem], path: Path) -> str:
    """What a user sees, the folder left out."""
    return "".join(f"{problem}\n" for problem in found).replace(str(path), path.name)


def errors(path: Path) -> list[str]:
    return [str(problem) for problem in problems(path) if problem.severity == "error"]


def fixed(path: Path, fixes: list[Fix], folder: Path) -> Path:
    target = folder / f"fixed_{path.name}"
    apply_fixes(fixes, path, target)
    return target


def fixes_of(path: Path) -> list[Fix]:
    return printed_fixes(printed(problems(path), path))


def assert_mended(path: Path, folder: Path) -> None:
    """All printed fixes leave no error and nothing to fix; those of errors alone leave no error."""
    fixes = fixes_of(path)
    assert errors(path)
    assert fixes
    everything = fixed(path, fixes, folder)
    assert errors(everything) == []
    assert fixes_of(everything) == []
    load_machine(everything)
    needed = [fix for fix in fixes if fix.severity == "error" or fix.form == "order"]
    assert errors(fixed(path, needed, folder)) == []


@with_shared_cases
@pytest.mark.parametrize("case", USER_CASES)
def test_the_users_file_gets_the_answer_that_was_agreed(case: str, golden: Golden) -> None:
    path = SHARED_CASES / f"{case}.yaml"
    golden(f"errors/{case}.txt", printed(problems(path), path))


@with_shared_cases
@pytest.mark.parametrize("case", USER_CASES)
def test_doing_what_is_printed_mends_the_users_file(case: str, tmp_path: Path) -> None:
    assert_mended(SHARED_CASES / f"{case}.yaml", tmp_path)


@with_shared_cases
def test_a_sound_machine_of_the_user_gives_no_problem_at_all() -> None:
    assert problems(SHARED_CASES / "edge_tpu_like.yaml") == []


@pytest.mark.parametrize("case", [*MENDED_BY_FIXES, *ONLY_WARNINGS, *NEED_THOUGHT])
def test_a_broken_machine_file_gets_the_answer_that_was_agreed(case: str, golden: Golden) -> None:
    path = OWN_FILES / f"{case}.yaml"
    golden(f"errors/{case}.txt", printed(problems(path), path))


@pytest.mark.parametrize("case", MENDED_BY_FIXES)
def test_doing_what_is_printed_mends_a_broken_machine_file(case: str, tmp_path: Path) -> None:
    assert_mended(OWN_FILES / f"{case}.yaml", tmp_path)


@pytest.mark.parametrize("case", ONLY_WARNINGS)
def test_a_file_with_warnings_alone_loads_and_its_fixes_take_their_warnings_away(
    case: str, tmp_path: Path
) -> None:
    path = OWN_FILES / f"{case}.yaml"
    assert errors(path) == []
    assert load_machine(path).name.startswith("tern_")
    fixes = fixes_of(path)
    after = fixed(path, fixes, tmp_path) if fixes else path
    assert errors(after) == []
    assert fixes_of(after) == []


@pytest.mark.parametrize("case", NEED_THOUGHT)
def test_fixes_beside_faults_that_need_thought_bring_no_new_fault(
    case: str, tmp_path: Path
) -> None:
    path = OWN_FILES / f"{case}.yaml"
    before, fixes = errors(path), fixes_of(path)
    assert before
    with pytest.raises(InputError):
        load_machine(path)
    if fixes:
        after = fixed(path, fixes, tmp_path)
        mended = {fix.path for fix in fixes_of(path)} - {fix.path for fix in fixes_of(after)}
        assert mended == {fix.path for fix in fixes}
        assert len(errors(after)) <= len(before)


@pytest.mark.parametrize("case", REFUSED)
def test_a_file_that_cannot_be_read_is_refused_in_one_message(case: str, golden: Golden) -> None:
    path = OWN_FILES / f"{case}.yaml"
    golden(f"errors/{case}.txt", refusal(path))


def test_a_binary_file_is_refused_in_one_message(tmp_path: Path, golden: Golden) -> None:
    path = tmp_path / "binary.yaml"
    path.write_bytes(b"\x7fELF\x02\x01\x01\x00\xff\xfe")
    golden("errors/binary.txt", refusal(path))


def test_a_missing_file_is_refused_in_one_message(tmp_path: Path, golden: Golden) -> None:
    golden("errors/missing.txt", refusal(tmp_path / "missing.yaml"))


def refusal(path: Path) -> str:
    with pytest.raises(InputError) as caught:
        problems(path)
    assert len(caught.value.problems) == 1
    return printed(list(caught.value.problems), path)


def test_every_machine_file_here_and_every_golden_text_is_used() -> None:
    cases = {*MENDED_BY_FIXES, *ONLY_WARNINGS, *NEED_THOUGHT, *REFUSED}
    assert {path.stem for path in OWN_FILES.glob("*.yaml")} == cases
    texts = {path.stem for path in (REPOSITORY / "tests/golden/errors").glob("*.txt")}
    assert {*cases, *USER_CASES, "binary", "missing"} <= texts


@pytest.mark.parametrize("case", [*MENDED_BY_FIXES, *ONLY_WARNINGS, *NEED_THOUGHT])
def test_problems_come_in_file_order_errors_first_and_none_twice(case: str) -> None:
    found = problems(OWN_FILES / f"{case}.yaml")
    keys = [(p.severity == "warning", p.line or 0, p.column or 0) for p in found]
    assert keys == sorted(keys)
    assert len(set(found)) == len(found)
