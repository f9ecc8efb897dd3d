"""Make changes that once went unnoticed, one at a time, on a copy: a test should fail now.

Run ``python -m benchmarks.sabotages``. Each line is a change of one module and the tests that should notice; the answer
is *caught*, *timed out*, or *survived*, which is an error. First the tests run on the copy as it is, and must pass. The
working tree is never touched.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from benchmarks.mutants import _copy, run
from benchmarks.mutations import PACKAGE

# What it is; module; before; after; tests.
SABOTAGES = (
    ("the ways to pair off strays", "sync/likelihood/model.py", "    value -= float(gammaln(strays + 1).sum())\n", "",
     "sync/likelihood"),
    ("strays in what a match is worth", "sync/likelihood/model.py", " + np.log(np.maximum(strays, 0.5))", "",
     "sync/likelihood"),
    ("only earlier objects are far", "sync/likelihood/observations.py", "D[rank[:, None] <= rank] = np.inf",
     "D[rank[:, None] == rank] = np.inf", "sync/likelihood"),
    ("half of the expected fscore as price", "sync/likelihood/decision.py", "value / 2", "value", "sync/likelihood"),
    ("unique maximum of the projection", "sync/rounding.py",
     "(np.bincount(cell)[cell] == 1) & ((U.max(axis=1, keepdims=True) == U).sum(axis=1) == 1)",
     "np.bincount(cell)[cell] == 1", "sync/test_literal.py sync/test_synchronise.py"),
    ("/ choices", "sync/tracks/rules.py", " / choices, 0.0", ", 0.0", "sync/tracks/test_literal.py"),
    ("slope of the line search", "stiefel/steps.py", "_SUFFICIENT * scale * slope", "0.0", "stiefel/test_literal.py"),
    ("widening of λ_min", "stiefel/operators.py", "max(residual - lowest, 0.0)", "max(-lowest, 0.0)",
     "stiefel/test_literal.py stiefel/test_linear_algebra.py"),
    ("lexsort of canonical", "matching/_canonical.py",
     "np.lexsort((points[:, 1], points[:, 0], objects[:, 1], objects[:, 0]))", "np.arange(len(points))",
     "matching/test_building.py matching/test_matchings.py matching/test_bad_matchings.py"),
    ("keep &= first", "io/colmap/write_rows.py", "    keep &= first\n", "", "io/test_io_colmap.py"),
    ("n / (n − 1)", "matching/metrics.py", "n / (n - 1) * ", "", "matching/test_metrics.py"),
    ("strict=True of the CSV reader", "io/csv_table.py", "delimiter=delimiter, strict=True", "delimiter=delimiter",
     "io/test_io_plain.py io/test_hostile.py"),
    ("order of the worst conflicts", "report/conflicts.py", "np.lexsort((which, -points, objects - points))",
     "np.lexsort((which, objects - points))", "report/test_report_counts.py report/test_report_page.py"),
)  # fmt: skip


def main() -> None:
    """Make each change, run the tests, and print how they ended."""
    survived = 0
    with tempfile.TemporaryDirectory() as name:
        folder = _copy(Path(name))
        every = sorted({f"tests/{test}" for *_, tests in SABOTAGES for test in tests.split()})
        if run(every, folder, 3600)[0] != "survived":
            raise SystemExit(f"{(folder / 'log.txt').read_text()}\nthe tests fail without any change")
        for what, module, before, after, tests in SABOTAGES:
            path = folder / PACKAGE / module
            original = path.read_text(encoding="utf-8")
            if original.count(before) != 1:
                raise SystemExit(f"{module} holds {before!r} {original.count(before)} times; bring this up to date")
            path.write_text(original.replace(before, after), encoding="utf-8")
            outcome, seconds = run([f"tests/{path}" for path in tests.split()], folder, 600)
            path.write_text(original, encoding="utf-8")
            survived += outcome == "survived"
            print(f"{outcome:9} {what} ({module}), {seconds:.0f} processor seconds", flush=True)
    raise SystemExit(f"{survived} of {len(SABOTAGES)} survived" if survived else 0)


if __name__ == "__main__":
    os.environ["HYPOTHESIS_PROFILE"] = "brief"
    main()
