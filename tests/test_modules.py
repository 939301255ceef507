"""Each module of `fwdad/` has tests: a file of its name, or those of its group in `GROUPS`."""

from pathlib import Path

from tests.modules import FWDAD, GROUPS, TESTS, file_of_its_name, files_of, group_of

MODULES = sorted(p.relative_to(FWDAD) for p in FWDAD.rglob("*.py") if p.name != "__init__.py")


def test_every_module_has_tests():
    without = [str(module) for module in MODULES if not files_of(module)]
    assert without == [], "name a test file after each, or enter it in tests/modules.py"


def test_groups_name_files_that_exist():
    files = {file for names in GROUPS.values() for file in names}
    assert {file for file in files if not (TESTS / file).is_file()} == set()


def test_no_group_is_empty():
    used = {group_of(module) for module in MODULES if file_of_its_name(module) is None}
    assert GROUPS.keys() - used == set()


def test_a_file_in_a_deeper_or_another_folder_is_not_taken_for_a_module_s():
    assert file_of_its_name(Path("transforms/reverse/rules.py")) == Path(
        "transforms/reverse/test_rules.py"
    )
    assert file_of_its_name(Path("codegen/loops/fusion.py")) == Path("codegen/test_fusion.py")
    assert file_of_its_name(Path("ir/fusion.py")) is None
    assert file_of_its_name(Path("transforms/hoist.py")) is None
