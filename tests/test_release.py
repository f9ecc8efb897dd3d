"""What names a version or a requirement in several places names the same."""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import stiefelsync

ROOT = Path(__file__).parents[1]


def test_the_version_is_the_same_everywhere():
    version = stiefelsync.__version__
    assert f"\nversion: {version}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    recipe = (ROOT / "packaging" / "conda" / "meta.yaml").read_text(encoding="utf-8")
    assert f'{{% set version = "{version}" %}}' in recipe
    assert f"version = {{{version}}}," in (ROOT / "README.md").read_text(encoding="utf-8")
    dated = re.findall(
        r"^## \[?(\d+\.\d+\.\d+(?:rc\d+)?)\]? – (\d{4}-\d{2}-\d{2})$", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.M
    )
    assert dated[0][0] == version


def test_the_recipe_takes_the_checksum_of_a_release(tmp_path):
    fill = ROOT / "packaging" / "conda" / "fill.py"
    sdist = tmp_path / f"stiefelsync-{stiefelsync.__version__}.tar.gz"
    sdist.write_bytes(b"files")
    done = subprocess.run([sys.executable, str(fill), str(sdist)], capture_output=True, text=True, check=True)
    assert f"sha256: {hashlib.sha256(b'files').hexdigest()}\n" in done.stdout
    other = sdist.rename(tmp_path / "stiefelsync-0.1.tar.gz")
    done = subprocess.run([sys.executable, str(fill), str(other)], capture_output=True, text=True)
    assert done.returncode == 1
    assert "names another version" in done.stderr


def test_the_two_commands_name_what_there_is():
    readme, script = ((ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "run.py"))
    verbs = re.findall(r"^python run\.py (\w+)$", readme, re.MULTILINE)
    assert verbs == ["demo", "test"]
    assert all(f'verb == "{verb}"' in script for verb in verbs)
    assert "python3 run.py test" in (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    refused = subprocess.run([sys.executable, str(ROOT / "run.py"), "dance"], capture_output=True, text=True)
    assert (refused.returncode, refused.stderr) == (1, "no verb 'dance': demo or test\n")


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
