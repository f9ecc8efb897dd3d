"""The page is complete in itself, bounded, harmless whatever names it shows, and written whole or not at all."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import re
import sys
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from stiefelsync.errors import InputError, MissingExtraError, visible
from stiefelsync.matching.difference import difference
from stiefelsync.matching.graph import components
from stiefelsync.matching.matchings import Matchings
from stiefelsync.report import render, write_report
from stiefelsync.report.pictures import find_images, take_pictures
from stiefelsync.sync.method import Outcome
from stiefelsync.sync.result import Synchronisation
from stiefelsync.sync.tracks.details import MatchesByRule, TracksDetails

NASTY = (
    "<script>alert(1)</script>",
    "</script><b>",
    "a\u2028b",
    "\"'><img src=x onerror=alert(1)>",
    "&amp;",
    "tail\udcff",
)


class Elements(HTMLParser):
    """Every element with its attributes, and the text of the script elements."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self.inside = False
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        self.inside = tag == "script"
        if self.inside:
            self.scripts.append("")

    def handle_endtag(self, tag: str) -> None:
        self.inside = False

    def handle_data(self, data: str) -> None:
        if self.inside:
            self.scripts[-1] += data


def nasty_problem() -> Synchronisation:
    problem = Matchings.from_arrays([[0, 1], [0, 1], [1, 2]], [[0, 0], [1, 1], [0, 0]], [2, 2, 1, 1, 1, 1], names=NASTY)
    labels = np.array([0, -1, 0, -1, -1, -1, -1, -1])
    return Synchronisation(problem, "<i>method</i>", Outcome(labels=labels), 1)


def test_no_name_title_or_method_becomes_markup() -> None:
    result = nasty_problem()
    page = render(result.difference, result, title="<script>alert(2)</script>")
    elements = Elements(page)
    assert "<script>alert" not in page
    assert "\u2028" not in "".join(elements.scripts)
    tags = [tag for tag, _ in elements.found]
    assert tags.count("script") == 2  # the data and the program
    assert "i" not in tags
    assert not any(name.startswith("on") for _, attributes in elements.found for name in attributes)
    assert json.loads(elements.scripts[0])["names"] == [visible(name) for name in NASTY]


def test_a_name_that_is_not_utf8_can_be_written(tmp_path: Path) -> None:
    result = nasty_problem()
    page = write_report(tmp_path / "page.html", result.input, result)
    assert "tail\\udcff" in page.read_text(encoding="utf-8")


def test_the_page_refers_to_nothing_outside_itself(photographed: Synchronisation, photographs: Path) -> None:
    page = render(photographed.difference, photographed, images=photographs)
    for _, attributes in Elements(page).found:
        for name in ("src", "href", "srcset", "action", "data"):
            value = attributes.get(name) or ""
            assert value == "" or value.startswith(("data:", "#"))
    assert "url(" not in page
    assert "@import" not in page
    assert "fetch(" not in page
    assert "default-src 'none'" in page


def test_the_policy_allows_exactly_the_program_of_the_page(plain: Synchronisation) -> None:
    page = render(plain.difference, plain)
    digest = base64.b64encode(hashlib.sha256(Elements(page).scripts[1].encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in page


def test_the_story_is_told_in_numbers(plain: Synchronisation) -> None:
    page = render(plain.difference, plain)
    kept, added = int(plain.kept.sum()), plain.added().n_matches
    removed = plain.input.n_matches - kept
    assert f"{kept} of {plain.input.n_matches} matches kept" in page
    assert f"{removed} removed, {added} added" in page
    assert "none does now" in page


def test_what_would_follow_is_not_counted_as_part_of_the_answer(plain: Synchronisation) -> None:
    page = render(replace(plain.difference, adds=False), plain)
    kept, added = plain.input.keep(plain.kept), plain.added().n_matches
    removed = plain.input.n_matches - kept.n_matches
    assert f"{removed} removed, {added} more would follow. " in page
    assert f'<span class="unseen">after </span>{kept.n_matches}</span>' in page
    _, track = components(kept)
    tracks = int((np.bincount(track) > 1).sum())
    assert f'<span class="unseen">after </span>{tracks}</span>' in page
    assert "added</span>" not in page


def test_why_matches_were_removed(plain: Synchronisation) -> None:
    outcome = Outcome(labels=plain.labels, details=TracksDetails({}, MatchesByRule(0, 0, 0, 3), 0, 0, 0, 0.0))
    page = render(plain.difference, Synchronisation(plain.input, "tracks", outcome, plain.universe_size))
    others = plain.input.n_matches - int(plain.kept.sum()) - 3
    assert f"3 move unlike their neighbours, {others} contradict the tracks" in page
    assert "unlike their neighbours" not in render(plain.difference, plain)


def test_the_certificate_is_shown_only_on_request(plain: Synchronisation, monkeypatch: pytest.MonkeyPatch) -> None:
    fresh = Synchronisation(plain.input, "truth", plain.outcome, plain.universe_size)
    said = f"of at most {plain.upper_bound:,.0f}, gap "
    assert said in render(fresh.difference, fresh, certificate=True)
    monkeypatch.setattr("stiefelsync.sync.result.upper_bound", None)
    fresh = Synchronisation(plain.input, "truth", plain.outcome, plain.universe_size)
    assert said not in render(fresh.difference, fresh)


def test_an_answer_without_labels_has_no_confidence(plain: Synchronisation) -> None:
    same = Synchronisation(plain.input, "same", Outcome(matchings=plain.input), 12)
    for result, known in ((plain, True), (same, False)):
        packed = json.loads(Elements(render(result.difference, result)).scripts[0])["pairs"][0]
        support = np.frombuffer(base64.b64decode(packed["support"]), "u1")[: packed["kept"] + packed["removed"]]
        assert (support <= 100).all() == known
        assert (support == 255).all() != known


def test_a_result_of_another_problem_is_refused(plain: Synchronisation, tmp_path: Path) -> None:
    other = plain.input.keep(np.arange(plain.input.n_matches) > 0)
    with pytest.raises(InputError, match="pass the matches that were synchronised"):
        write_report(tmp_path / "page.html", other, plain)
    assert not [*tmp_path.iterdir()]


def test_notes_are_text() -> None:
    result = nasty_problem()
    page = render(result.difference, result, notes=["<script>alert(3)</script>"])
    assert page.count("alert(3)") == 1
    assert "<script>alert" not in page


@pytest.mark.parametrize(
    "problem",
    [
        Matchings.from_pairs({}, []),
        Matchings.from_pairs({}, [3, 0]),
        Matchings.from_labels([0, 0], [1, 1]),
        Matchings.from_labels([0, 0], [1, 1], coordinates=[[1, 1], [np.nan, 2]]),
    ],
    ids=["nothing", "no matches", "one match", "one position unknown"],
)
def test_small_problems_have_a_page_too(problem: Matchings) -> None:
    assert "</html>" in render(difference(problem, problem))


def test_what_is_left_out_is_named(photographed: Synchronisation) -> None:
    page = render(photographed.difference, photographed, max_pairs=3)
    pairs = len(np.unique(np.concatenate([photographed.input.pair_objects, photographed.added().pair_objects]), axis=0))
    assert f"{pairs - 3} of {pairs} pairs are not in the viewer" in page
    listed = re.search(r'<ul class="columns">(.*?)</ul>', page, re.S)
    assert listed is not None
    assert listed[1].count("<li>") == pairs - 3
    data = json.loads(Elements(page).scripts[0])
    assert len(data["pairs"]) == 3


def test_a_large_problem_keeps_the_page_small() -> None:
    # 400 objects × 1,000 points; neighbours matched: 1.2 M matches, far more than the viewer holds.
    k, n = 400, 1000
    order = np.random.default_rng(0).permuted(np.tile(np.arange(n), (k, 1)), axis=1)
    place = np.argsort(order, axis=1)
    pairs = {(i, i + s): np.stack([place[i], place[i + s]], 1) for i in range(k - 3) for s in (1, 2, 3)}
    problem = Matchings.from_pairs(pairs, np.full(k, n), coordinates=np.zeros((k * n, 2)))
    half = problem.keep(np.random.default_rng(1).random(problem.n_matches) < 0.9)
    assert len(render(difference(problem, half))) < 6_000_000


def test_interrupted_writing_leaves_the_old_page(
    plain: Synchronisation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = write_report(tmp_path / "page.html", plain.input, plain, title="first")

    def full_disk(self: Path, data: bytes) -> int:
        with self.open("wb") as opened:
            opened.write(data[:100])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full_disk)
    with pytest.raises(InputError, match="No space left on device"):
        write_report(target, plain.input, plain, title="second", force=True)
    assert "first" in target.read_text(encoding="utf-8")
    assert list(tmp_path.iterdir()) == [target]


def test_nothing_but_an_earlier_page_is_overwritten(plain: Synchronisation, tmp_path: Path) -> None:
    page = write_report(tmp_path / "page.html", plain.input, plain)
    with pytest.raises(InputError, match="is there already; choose another output, or replace it with force=True"):
        write_report(page, plain.input, plain)
    write_report(page, plain.input, plain, force=True)
    with pytest.raises(InputError, match="is the input itself"):
        write_report(page, plain.input, plain, source=page)
    database = tmp_path / "database.db"
    database.write_bytes(b"SQLite format 3\0")
    with pytest.raises(InputError, match="is not a web page"):
        write_report(database, plain.input, plain, force=True)
    assert database.read_bytes() == b"SQLite format 3\0"
    with pytest.raises(InputError, match="does not exist"):
        write_report(tmp_path / "nowhere" / "page.html", plain.input, plain)
    with pytest.raises(InputError, match="is a folder"):
        write_report(tmp_path, plain.input, plain)


@pytest.mark.parametrize("package", ["jinja2", "PIL"])
def test_a_missing_package_is_named_with_its_extra(
    package: str, photographed: Synchronisation, photographs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.delitem(sys.modules, "stiefelsync.report.pictures")
    with pytest.raises(MissingExtraError, match=r'pip install "stiefelsync\[report\]"'):
        render(photographed.difference, photographed, images=photographs)


# ---------------------------------------------------------------- images


def picture(uri: str) -> Image.Image:
    return Image.open(io.BytesIO(base64.b64decode(uri.removeprefix("data:image/jpeg;base64,"))))


def test_images_are_found_by_name_and_never_outside_the_folder(tmp_path: Path) -> None:
    folder = tmp_path / "images"
    (folder / "left").mkdir(parents=True)
    for path in (folder / "a.jpg", folder / "left" / "b.jpg", folder / "C.PNG", tmp_path / "secret.jpg"):
        path.touch()
    names = ["a.jpg", "left/b.jpg", "c.jpg", "../secret.jpg", str(tmp_path / "secret.jpg"), "missing.jpg", "\0"]
    assert find_images(folder, names) == {0: folder / "a.jpg", 1: folder / "left" / "b.jpg", 2: folder / "C.PNG"}
    with pytest.raises(InputError, match="holds no image named like an object, such as 'x'"):
        find_images(folder, ["x"])


def test_patches_show_the_keypoint_in_the_middle_and_ignore_a_rotation_noted_in_the_file(tmp_path: Path) -> None:
    image = Image.new("RGB", (400, 200))
    image.paste((255, 0, 0), (295, 45, 305, 55))
    exif = Image.Exif()
    exif[0x0112] = 6  # shown upright by viewers, 200 × 400
    image.save(tmp_path / "a.jpg", quality=95, exif=exif)
    taken = take_pictures(
        {0: tmp_path / "a.jpg"}, [0], [0, 1], np.zeros(2, int), np.float32([[300, 50], [0, 0]]), budget=10**6
    )
    assert taken.sizes == {0: (400, 200)}
    patch = picture(taken.patches[0])
    red, green, _ = patch.getpixel((patch.width // 2, patch.height // 2))
    assert red > 200
    assert green < 60
    assert max(patch.getpixel((4, 4))) < 60
    shown = picture(taken.photographs[0])
    assert shown.size == (400, 200)
    assert not shown.getexif()


def test_normalised_positions_are_drawn_where_their_pixels_are(
    photographed: Synchronisation, photographs: Path, castle
) -> None:
    size = np.array([castle.width, castle.height])
    problem = photographed.input
    normalised = Matchings.from_pairs(
        problem.pairs(), problem.sizes, names=problem.names, coordinates=(problem.coordinates - size / 2) / max(size)
    )
    answer = Synchronisation(normalised, "truth", photographed.outcome, photographed.universe_size)
    drawn = [
        json.loads(Elements(render(result.difference, result, images=photographs)).scripts[0])["objects"]
        for result in (photographed, answer)
    ]
    assert drawn[0].keys() == drawn[1].keys()
    for i, here in drawn[0].items():
        a, b = (np.frombuffer(base64.b64decode(x["xy"]), "<u2").astype(int) for x in (here, drawn[1][i]))
        assert here["frame"] == drawn[1][i]["frame"] == size.tolist()
        assert np.abs(a - b).max() <= 1
    located = find_images(photographs, problem.names)
    cut = [
        take_pictures(located, [], [0], problem.point_objects, x.coordinates, budget=1) for x in (problem, normalised)
    ]
    a, b = (np.asarray(picture(one.patches[0])).astype(int) for one in cut)
    assert np.abs(a - b).max() < 20
    assert a.std() > 10


def test_without_coordinates_there_are_no_photographs(photographed: Synchronisation, photographs: Path) -> None:
    bare = Matchings.from_pairs(photographed.input.pairs(), photographed.input.sizes, names=photographed.input.names)
    page = render(difference(bare, bare), images=photographs)
    assert json.loads(Elements(page).scripts[0])["photographs"] == {}
    assert "data:image/jpeg" not in page
    assert "The photographs are not shown: these points have no coordinates." in page


def test_photographs_stay_within_their_budget(photographs: Path, castle) -> None:
    located = find_images(photographs, castle.matchings.names)
    owners, coordinates = castle.matchings.point_objects, castle.matchings.coordinates
    taken = take_pictures(located, range(6), [], owners, coordinates, budget=9_000)
    assert sum(map(len, taken.photographs.values())) <= 9_000
    assert taken.left_out
    assert {*taken.photographs, *taken.left_out} == set(range(6))


def test_missing_and_unreadable_images_are_named(
    photographed: Synchronisation, photographs: Path, tmp_path: Path
) -> None:
    names = photographed.input.names
    for name in names[1:]:
        (tmp_path / name).write_bytes((photographs / name).read_bytes())
    (tmp_path / names[2]).write_bytes(b"no image")
    page = render(photographed.difference, photographed, images=tmp_path)
    assert f"No image found for {names[0]}." in page
    assert f"No readable image for {names[2]}." in page


def test_images_need_names(plain: Synchronisation, photographs: Path) -> None:
    with pytest.raises(InputError, match="these objects have no names"):
        render(plain.difference, plain, images=photographs)
