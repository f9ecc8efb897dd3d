"""What names a version or a requirement in several places names the same."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

import stiefelsync

ROOT = Path(__file__).parents[1]


def test_the_version_is_the_same_everywhere():
    version = stiefelsync.__version__
    assert f"\nversion: {version}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    dated = re.findall(
        r"^## \[?(\d+\.\d+\.\d+(?:rc\d+)?)\]? – (\d{4}-\d{2}-\d{2})$", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.M
    )
    assert dated[0][0] == version


def test_conda_asks_for_what_pip_does():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    recipe = (ROOT / "packaging" / "conda" / "meta.yaml").read_text(encoding="utf-8")
    asked = {
        line.strip("- ").replace(" ", "")
        for line in recipe.partition("  run:\n")[2].partition("  run_")[0].splitlines()
    }
    assert asked == {*project["dependencies"], f"python{project['requires-python']}"}


WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
_USED = re.compile(r"^ *(?:- )?uses: (\S+)(.*)$", re.MULTILINE)


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_actions_are_pinned_by_commit_and_leave_no_credentials(path):
    text = path.read_text(encoding="utf-8")
    loose = [
        name
        for name, said in _USED.findall(text)
        if not re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", name) or " # v" not in said
    ]
    assert not loose
    assert text.count("uses: actions/checkout@") == text.count("persist-credentials: false")
    assert "\npermissions:\n  contents: read\n" in text
    assert "pull_request_target" not in text


def test_images_are_pinned_by_digest_and_both_are_kept_up_to_date():
    images = re.findall(r"^FROM (\S+)", (ROOT / "Dockerfile").read_text(encoding="utf-8"), re.MULTILINE)
    assert images
    assert all(re.fullmatch(r"[\w.:-]+@sha256:[0-9a-f]{64}", image) for image in images)
    kept = (ROOT / ".github" / "dependabot.yml").read_text(encoding="utf-8")
    assert set(re.findall(r"package-ecosystem: (\S+)", kept)) == {"docker", "github-actions", "pip"}


def test_every_system_that_gets_a_wheel_is_tested_on():
    tested, released = (
        (ROOT / ".github" / "workflows" / name).read_text("utf-8") for name in ("tests.yml", "release.yml")
    )
    systems = [set(re.search(r"os: \[(.*)\]", text)[1].split(", ")) for text in (tested, released)]
    assert systems[1] - systems[0] <= {"macos-15-intel"}
    assert {"ubuntu-24.04-arm", "macos-latest", "windows-latest"} <= systems[0]
