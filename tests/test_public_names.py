"""The public names: a change here is deliberate and has a line in the changelog."""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

import stiefelsync

PUBLIC = """
    METHODS Constraints ConvergenceWarning FormatError InputError Matchings MissingExtraError StiefelResult
    StiefelSyncError Synchronisation __version__ clean compare cycle_error datasets estimate_universe io judge merge
    methods rotate round_labels score sparse_stiefel synchronise two_stage
""".split()  # noqa: SIM905  one name per quoted line would be ten times as long
# Attributes of the package that a star import leaves out.
BESIDE = ["distributed", "errors", "following", "inspect", "plotting", "registration", "report", "torch"]

MATCHINGS = """
    agreeing coordinates endpoints from_arrays from_blocks from_endpoints from_labels from_matrix from_networkx
    from_pairs from_scores from_table indices keep match_keys match_pairs match_weights n_matches n_objects n_points
    names offsets only_pairs pair pair_objects pair_start pairs point_objects records repair shared_with sizes
    to_matrix to_networkx weights with_records with_weights
""".split()  # noqa: SIM905  one name per quoted line would be ten times as long


def _fresh(code: str) -> str:
    """Run code in an interpreter that has imported nothing yet."""
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def test_the_list_of_public_names():
    assert sorted(stiefelsync.__all__) == sorted(PUBLIC)


# Defaults decide what most users get; None and "no default" are left out.
DEFAULTS: dict[str, dict[str, object]] = {
    "sparse_stiefel": {
        "p": 3, "step": "gradient", "criterion": "primary", "sense": "max", "pivoting": False, "tol": 1e-5,
        "max_iter": 200, "extra_iter": 0, "rng": 0,
    },
    "two_stage": {
        "subspace": "auto", "rotation": "polar", "p": 3, "sense": "max", "tol": 1e-5, "max_iter": 200, "rng": 0,
    },
    "rotate": {"p": 3, "tol": 1e-4, "max_iter": 50},
    "synchronise": {"universe": "auto", "rng": 0},
    "clean": {"universe": "auto", "rng": 0},
    "compare": {"universe": "auto", "rng": 0},
    "cycle_error": {"rng": 0},
    "inspect": {"rng": 0},
    "estimate_universe": {},
    "round_labels": {},
    "score": {},
}  # fmt: skip


@pytest.mark.parametrize("name", DEFAULTS)
def test_defaults_change_deliberately(name):
    parameters = inspect.signature(getattr(stiefelsync, name)).parameters
    found = {key: p.default for key, p in parameters.items() if p.default not in (p.empty, None)}
    assert {key: found[key] for key in DEFAULTS[name]} == DEFAULTS[name]


def test_the_list_of_what_matchings_offer():
    offered = {*stiefelsync.Matchings.__dataclass_fields__, *dir(stiefelsync.Matchings)}
    assert sorted(name for name in offered if not name.startswith("_")) == MATCHINGS


@pytest.mark.parametrize("name", [*PUBLIC, "errors", "following", "inspect", "plotting", "registration", "report"])
def test_every_public_name_is_found_documented_and_offered_to_tab(name):
    assert name in dir(stiefelsync)
    value = getattr(stiefelsync, name)
    if inspect.ismodule(value) or inspect.isclass(value) or inspect.isfunction(value):
        assert inspect.getdoc(value)


def test_the_lazy_table_and_the_imports_for_type_checkers_agree():
    tree = ast.parse(Path(stiefelsync.__file__).read_text(encoding="utf-8"))
    block = next(node for node in tree.body if isinstance(node, ast.If))
    seen = {alias.name for node in block.body for alias in node.names}
    assert seen == {*stiefelsync._HOMES, *stiefelsync._MODULES} == {*PUBLIC, *BESIDE} - {"__version__"}


def test_a_star_import_leaves_pythons_own_inspect_alone():
    code = "import inspect\nfrom stiefelsync import *\nprint(inspect.isfunction(synchronise))"
    assert _fresh(code) == "True"


def test_importing_the_package_loads_neither_numpy_nor_an_optional_dependency():
    code = (
        "import sys, stiefelsync; print(sorted({'numpy', 'scipy', 'matplotlib', 'torch', 'dask'} & set(sys.modules)))"
    )
    assert _fresh(code) == "[]"


def test_the_registry_is_full_whichever_name_comes_first():
    for first in ("METHODS", "methods.register"):
        found = _fresh(f"import stiefelsync; stiefelsync.{first}; print('accurate' in stiefelsync.METHODS)")
        assert found == "True"


@pytest.mark.parametrize(("name", "package", "extra"), [("torch", "torch", "torch")])
def test_modules_of_an_extra_are_offered_to_tab_and_name_the_extra_they_need(name, package, extra):
    assert name in dir(stiefelsync)
    code = f"import sys, stiefelsync; sys.modules[{package!r}] = None\n"
    code += f"try: stiefelsync.{name}\nexcept ImportError as error: print(type(error).__name__, error)"
    assert _fresh(code).startswith("MissingExtraError ")
    assert _fresh(code).endswith(f'run: pip install "stiefelsync[{extra}]"')


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match=r"^module 'stiefelsync' has no attribute 'sincronise'$"):
        stiefelsync.sincronise  # noqa: B018


def test_the_american_spelling_is_told_the_british_one():
    with pytest.raises(AttributeError, match=r"no attribute 'synchronize'; it is spelt 'synchronise' here$"):
        stiefelsync.synchronize  # noqa: B018


def test_the_reference_lists_every_public_name():
    root = Path(__file__).parents[1]
    listed = set(re.findall(r"^   ([\w.]+)$", (root / "docs" / "reference" / "api.md").read_text("utf-8"), re.M))
    wanted = {*stiefelsync.__all__} - {*MODULES, *INSIDE}
    for module in MODULES:
        source = root / "src" / "stiefelsync" / module / "__init__.py"
        source = source if source.exists() else source.parent.with_suffix(".py")
        tree = ast.parse(source.read_text(encoding="utf-8"))
        names = next(ast.literal_eval(node.value) for node in tree.body if isinstance(node, ast.Assign))
        wanted |= {f"{module}.{name}" for name in names} - {f"{module}.{name}" for name in INSIDE}
    assert sorted(wanted - listed) == []


MODULES = ("datasets", "distributed", "following", "io", "methods", "plotting", "registration", "report", "torch")
# Modules inside these, what `clean` needs of them, and what the page tells in prose.
INSIDE = """
    Callback FORMATS GROUP METHODS __version__ cameras cells check_page check_path colmap correspondences csv dd errors
    frames gtsfm hloc in_memory mat npz opensfm parquet save_to shapes tables
""".split()  # noqa: SIM905  one name per quoted line would be ten times as long
