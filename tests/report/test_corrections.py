"""The page answers back: what a person says of tracks is saved, and the printed command holds to it."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from stiefelsync import Constraints, Matchings, clean, datasets, io
from stiefelsync.cli.app import app
from stiefelsync.judging import judge_files
from stiefelsync.matching.difference import difference
from stiefelsync.report import render
from stiefelsync.report.conflicts import worst_conflicts
from stiefelsync.report.corrections import LONGEST, MAX_POINTS, MAX_TRACKS, tracks_to_check
from stiefelsync.sync.synchronise import synchronise
from tests.report.browsers import Opened, needs_browser


def test_conflicts_come_first_then_what_is_least_sure():
    problem, truth = datasets.synthetic(12, 9, 0.7, 0.5, rng=3)
    found = difference(problem, truth)
    sure = np.random.default_rng(0).random(13)[truth]
    worst = worst_conflicts(found)
    listed = tracks_to_check(found, worst, sure)
    assert sorted(p for one in listed for p in one.points) == sorted(range(problem.n_points))
    for one in listed:
        assert len(set(truth[list(one.points)])) == 1
    early = {truth[row[0]] for one in worst for row in one.tracks}
    rest = [one.confidence for one in listed[len(early) :] if len(one.points) > 1]
    assert {truth[one.points[0]] for one in listed[: len(early)]} == early
    assert rest == sorted(rest)


def test_a_page_holds_no_more_than_can_be_looked_at():
    problem = Matchings.from_labels(np.tile(np.arange(50), LONGEST + 1), [50] * (LONGEST + 1))
    labels = np.tile(np.arange(50), LONGEST + 1)
    assert tracks_to_check(difference(problem, labels), [], np.ones(len(labels))) == []
    part = labels.copy()
    part[50 * 20 :] = -1
    listed = tracks_to_check(difference(problem, part), [], np.ones(len(labels)))
    assert len(listed) == MAX_POINTS // 20 < MAX_TRACKS


def test_names_are_never_markup():
    problem = Matchings.from_labels([0, 1, 0, 1], [2, 2], names=['<b>"x"', "y"])
    page = render(difference(problem, np.array([0, 1, 0, 1])), synchronise(problem))
    assert 'data-object="&lt;b&gt;&#34;x&#34;"' in page
    assert "<b>" not in page.split('id="check"')[1].split("</section>")[0]


@pytest.fixture
def checked(tmp_path: Path) -> Path:
    """A file of matches, an answer to it and the page about that."""
    problem, _ = datasets.synthetic(12, 6, 0.8, 0.5, rng=3)
    named = Matchings.from_endpoints(problem.endpoints, problem.sizes, names=[f'day "{i}", é' for i in range(6)])
    io.write(named, tmp_path / "my matches.csv", "csv")
    clean(tmp_path / "my matches.csv", tmp_path / "clean.csv", report=tmp_path / "page.html", method="fast", rng=4)
    return tmp_path


def points_of(card) -> list[tuple[str, int]]:
    """The points of a card, as object and number."""
    of = card.locator(".spot button").evaluate_all("all => all.map(b => [b.dataset.object, Number(b.dataset.point)])")
    return [tuple(one) for one in of]


def saved(opened: Opened, folder: Path) -> Path:
    with opened.page.expect_download() as waiting:
        opened.page.locator("#save").click()
    waiting.value.save_as(folder / waiting.value.suggested_filename)
    return folder / waiting.value.suggested_filename


@needs_browser
@pytest.mark.parametrize("width", [1280, 400])
def test_five_corrected_tracks_and_the_printed_command(
    checked: Path, width: int, show: Callable[..., Opened], monkeypatch: pytest.MonkeyPatch
):
    opened = show(checked / "page.html", accept_downloads=True)
    page = opened.page
    page.set_viewport_size({"width": width, "height": 900})
    cards = page.locator(".check")
    long = [i for i in range(cards.count()) if cards.nth(i).locator(".spot").count() >= 3]
    ids = [cards.nth(i).get_attribute("data-card") for i in long]
    card = lambda place: page.locator(f'.check[data-card="{ids[place]}"]')  # noqa: E731

    # By mouse: one is right, one is wrong as a whole.
    right, wrong = points_of(card(0)), points_of(card(1))
    card(0).get_by_role("button", name="Accept").click()
    assert "is accepted. 1 correction" in page.locator("#check-status").inner_text()
    card(1).get_by_role("button", name="Reject").click()
    # By keyboard: the first point leaves the third track.
    split = points_of(card(2))
    card(2).locator(".spot button").first.focus()
    page.keyboard.press("Space")
    page.keyboard.press("s")
    assert page.evaluate("document.activeElement.className") == "check"
    # A point that left is merged with another track that has no point of its object.
    lone = page.locator(".check", has=page.locator(".mark", has_text="changed")).nth(1)
    assert points_of(lone) == split[:1]
    partner = next(p for p in range(3, len(ids)) if split[0][0] not in {name for name, _ in points_of(card(p))})
    joined = points_of(card(partner))
    lone.focus()
    page.keyboard.press("m")
    card(partner).get_by_role("button", name="Merge with").click()
    # A wrong deed is undone, a right one taken back and done again.
    other = next(p for p in range(3, len(ids)) if p != partner)
    kept = points_of(card(other))
    card(other).focus()
    page.keyboard.press("r")
    page.keyboard.press("u")
    page.keyboard.press("a")
    page.locator("#undo").click()
    page.locator("#redo").click()
    assert "5 corrections" in page.locator("#check-status").inner_text()

    file = saved(opened, checked)
    assert file.name == "corrections.csv"
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert opened.complaints == []
    assert [url for url in opened.requests if not url.startswith(("file:", "data:", "blob:"))] == []

    # The command on the page is run as it stands.
    monkeypatch.chdir(checked)
    words = shlex.split(page.locator("#command").inner_text())
    assert words[0] == "stiefelsync"
    result = CliRunner().invoke(app, words[1:])
    assert result.exit_code == 0, result.stdout + result.stderr
    answer = io.read(checked / "clean-corrected.csv")
    number = {name: i for i, name in enumerate(answer.names)}

    def one(a: tuple[str, int], b: tuple[str, int]) -> bool:
        return [a[1], b[1]] in answer.pair(number[a[0]], number[b[0]]).tolist()

    pairs = lambda points: [(a, b) for c, a in enumerate(points) for b in points[c + 1 :]]  # noqa: E731
    assert all(one(a, b) for a, b in pairs(right) + pairs(kept) + pairs(joined + split[:1]) + pairs(split[1:]))
    assert not any(one(a, b) for a, b in pairs(wrong) + [(split[0], b) for b in split[1:]])


@needs_browser
def test_what_the_page_refuses(checked: Path, show: Callable[..., Opened]):
    page = show(checked / "page.html").page
    status, cards = page.locator("#check-status"), page.locator(".check")
    assert page.locator("#save").is_disabled()
    long = [i for i in range(cards.count()) if cards.nth(i).locator(".spot").count() >= 3]
    one, two = (cards.nth(i) for i in long[:2])
    one.get_by_role("button", name="Split off chosen").click()
    assert status.inner_text().startswith("Choose the points of Track")
    for button in one.locator(".spot button").all():
        button.click()
    one.focus()
    page.keyboard.press("s")
    assert status.inner_text() == "All points are chosen; leave those that stay."
    shared = {name for name, _ in points_of(one)} & {name for name, _ in points_of(two)}
    assert shared
    one.get_by_role("button", name="Merge").click()
    two.get_by_role("button", name="Merge with").click()
    assert status.inner_text().startswith("Both have a point of day ")
    one.get_by_role("button", name="Merge").click()
    page.keyboard.press("Escape")
    assert status.inner_text() == "Nothing is merged."
    assert page.locator("#save").is_disabled()
    # Keys do nothing outside a card.
    page.locator("h1").click()
    page.keyboard.press("a")
    assert page.locator("#undo").is_disabled()


@needs_browser
def test_the_page_is_accessible(checked: Path, show: Callable[..., Opened]):
    """Every control has a name, every card is a named group, and what happens is announced."""
    page = show(checked / "page.html").page
    for card in page.locator(".check").all():
        name = card.get_attribute("aria-labelledby")
        assert page.locator(f"#{name}").count() == 1
    nameless = page.evaluate(
        "[...document.querySelectorAll('#check button')].filter(b => !b.textContent.trim() && !b.title).length"
    )
    assert nameless == 0
    assert page.locator("#check-status").get_attribute("role") == "status"
    small = page.evaluate(
        "[...document.querySelectorAll('#check button')].filter(b => b.getBoundingClientRect().height < 24).length"
    )
    assert small == 0


def test_a_second_page_goes_on_from_the_first(tmp_path: Path):
    problem, _ = datasets.synthetic(6, 5, 1.0, 0.3, rng=0)
    io.write(problem, tmp_path / "m.npz")
    io.write_constraints(Constraints(cannot=[[0, 0, 1, 0]]), problem, tmp_path / "corrections.csv")
    io.write_constraints(Constraints(cannot=[[0, 1, 1, 1]]), problem, tmp_path / "more.csv")
    files = [tmp_path / "corrections.csv", tmp_path / "more.csv"]
    done = clean(tmp_path / "m.npz", tmp_path / "c.npz", report=tmp_path / "page.html", constraints=files)
    assert len(done.result.constraints.cannot) == 2
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert f"--constraints {files[0]} --constraints {files[1]} --constraints corrections-2.csv" in page
    assert "Save corrections-2.csv" in page


@pytest.fixture
def judged(tmp_path: Path) -> Path:
    """A folder with matches of photographs, somebody's answer to them, and what the referee says of it."""
    image = pytest.importorskip("PIL.Image", reason="photographs are made by Pillow")
    problem, truth = datasets.synthetic(12, 6, 0.8, 0.5, rng=3)
    names = [f"photo {i}.jpg" for i in range(6)]
    at = np.random.default_rng(0).uniform(20, 300, (problem.n_points, 2))
    named = Matchings.from_endpoints(problem.endpoints, problem.sizes, names=names, coordinates=at)
    (tmp_path / "photos").mkdir()
    for i, name in enumerate(names):
        pixels = np.random.default_rng(i).integers(0, 255, (320, 320, 3), dtype=np.uint8)
        image.fromarray(pixels).save(tmp_path / "photos" / name)
    io.write(named, tmp_path / "matches.npz")
    io.write(synchronise(named, method="kruskal"), tmp_path / "theirs.csv", "tracks")
    io.write(named, tmp_path / "truth.npz", truth=truth)
    page, photos = tmp_path / "judge.html", tmp_path / "photos"
    judge_files(tmp_path / "theirs.csv", tmp_path / "matches.npz", report=page, images=photos)
    return tmp_path


def test_the_worst_tracks_have_thumbnails(judged: Path):
    text = (judged / "judge.html").read_text(encoding="utf-8").split('<section id="check"')[1].split("</section>")[0]
    assert text.count('class="spot"') == text.count("data:image/") > 20
    assert text.index("likely wrong") < text.index('class="spot"')


@needs_browser
def test_somebodys_answer_is_corrected(judged: Path, show: Callable[..., Opened], monkeypatch: pytest.MonkeyPatch):
    """Five of the worst tracks are split as the truth has them; the answer of the printed command holds that."""
    opened = show(judged / "judge.html", accept_downloads=True)
    page, problem = opened.page, io.read(judged / "matches.npz")
    truth = io.read_truth(judged / "truth.npz")
    number = {name: i for i, name in enumerate(problem.names)}
    own = lambda name, point: int(truth[problem.offsets[number[name]] + point])  # noqa: E731
    done, told = 0, []
    for place in range(page.locator(".check").count()):
        card = page.locator(f'.check[data-card="{place + 1}"]')
        points = points_of(card)
        labels = [own(*point) for point in points]
        leaving = [c for c, label in enumerate(labels) if label != labels[0]]
        if not leaving or done == 5:
            continue
        for c in leaving:
            card.locator(".spot button").nth(c).click()
        card.get_by_role("button", name="Split off chosen").click()
        parts = [points[c] for c in range(len(points)) if c not in leaving], [points[c] for c in leaving]
        # What is left of others in a part, the person has not seen; it is undone to be told no lies.
        if len(set(labels)) > 2:
            page.locator("#undo").click()
            continue
        done += 1
        told.append(parts)
    assert done == 5
    saved(opened, judged)
    monkeypatch.chdir(judged)
    result = CliRunner().invoke(app, shlex.split(page.locator("#command").inner_text())[1:])
    assert result.exit_code == 0, result.stdout + result.stderr
    answer = io.read(judged / "matches-corrected.npz")
    together = lambda a, b: [a[1], b[1]] in answer.pair(number[a[0]], number[b[0]]).tolist()  # noqa: E731
    for staying, leaving in told:
        assert all(together(part[0], other) for part in (staying, leaving) for other in part[1:])
        assert not any(together(a, b) for a in staying for b in leaving if a[0] != b[0])
    assert opened.complaints == []


@needs_browser
@pytest.mark.parametrize("width", [1280, 400])
def test_what_a_screen_reader_is_told(judged: Path, width: int, show: Callable[..., Opened]):
    """By the browser's accessibility tree: groups and buttons with names and states, and what was done, aloud."""
    opened = show(judged / "judge.html")
    page = opened.page
    page.set_viewport_size({"width": width, "height": 800})
    session = page.context.new_cdp_session(page)

    def told(role: str) -> list[tuple[str, dict[str, object]]]:
        nodes = session.send("Accessibility.getFullAXTree")["nodes"]
        return [
            (node["name"]["value"], {p["name"]: p["value"].get("value") for p in node.get("properties", [])})
            for node in nodes
            if node.get("role", {}).get("value") == role and not node["ignored"]
        ]

    groups = [name for name, _ in told("group") if "likely wrong" in name]
    assert len(groups) == page.locator(".check").count() > 5
    buttons = told("button")
    assert all(name.strip() for name, _ in buttons)
    points = [(name, state) for name, state in buttons if name.startswith("photo ")]
    assert points
    assert all("#" in name and state["pressed"] == "false" for name, state in points)
    assert all(state["live"] == "polite" for _, state in told("status"))
    first = page.locator(".check").first
    first.focus()
    assert first.evaluate("card => getComputedStyle(card).outlineStyle") != "none"
    page.keyboard.press("a")
    assert any("accepted" in name for name, _ in told("group"))
    assert page.locator("#check-status").inner_text().startswith("Track 1 is accepted")
    # By Tab alone: every button of a card is reached, and none is a trap.
    seen = set()
    for _ in range(first.locator("button").count() + 1):
        page.keyboard.press("Tab")
        seen.add(page.evaluate("document.activeElement.closest('.check')?.dataset.card ?? 'outside'"))
    assert {"1", "2"} <= seen
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
