"""NPZ and CSV: round trips, what users get wrong, and what is left behind (nothing)."""

from __future__ import annotations

import errno
import os

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from scipy import sparse

from stiefelsync import FormatError, InputError, Matchings, io
from stiefelsync.io import csv_table
from stiefelsync.io.tables import files
from stiefelsync.sync.method import Outcome
from stiefelsync.sync.result import Synchronisation
from tests.io.problems import labellings, problems

RELAXED = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
SMALL = Matchings.from_pairs({(0, 1): [[0, 1], [1, 0]], (1, 2): [[0, 0]]}, [2, 2, 1])


@pytest.fixture(params=["rows", "columns"], autouse=True)
def reader(request, monkeypatch):
    """Read and write text row by row, and as Arrow does from some size on."""
    if request.param == "columns":
        pytest.importorskip("pyarrow", reason="quick reading needs the extra tables")
        monkeypatch.setattr(csv_table, "QUICK_BYTES", 0)
        monkeypatch.setattr(files, "QUICK_ROWS", 0)
    return request.param


def answer_with(labels):
    """The answer of some method to the small problem."""
    return Synchronisation(SMALL, "by hand", Outcome(labels=np.array(labels)), 2)


# ---------------------------------------------------------------- round trips


@RELAXED
@given(problem=problems())
def test_npz_round_trip(tmp_path, problem):
    io.write(problem, tmp_path / "a.npz", force=True)
    assert io.read(tmp_path / "a.npz") == problem


@RELAXED
@given(problem=problems(coordinates=False))
@pytest.mark.parametrize("ending", ["csv", "tsv"])
def test_csv_round_trip(tmp_path, problem, ending):
    io.write(problem, tmp_path / f"a.{ending}", force=True, plain=False)
    assert io.read(tmp_path / f"a.{ending}") == problem


@RELAXED
@given(problem=problems(coordinates=False))
def test_plain_text_holds_all_but_what_it_says(tmp_path, problem):
    lost = problem.n_matches == 0 or bool(io.FORMATS["csv"].lost(problem, tmp_path / "a.csv", {}))
    io.write(problem, tmp_path / "a.csv", force=True)
    assert (tmp_path / "a.csv").read_text(encoding="utf-8").startswith("object_a,point_a,object_b,point_b")
    again = io.read(tmp_path / "a.csv")
    if not lost:
        assert again.n_points == problem.n_points
    pairs = {frozenset([(a, p), (b, q)]) for a, p, b, q in by_name(problem)}
    assert pairs == {frozenset([(a, p), (b, q)]) for a, p, b, q in by_name(again)}


def by_name(problem):
    """Yield matches by the names of their objects, without the spaces around them."""
    names = problem.names or [str(i) for i in range(problem.n_objects)]
    objects = problem.pair_objects[problem.match_pairs].tolist()
    for (i, j), (p, q) in zip(objects, problem.indices.tolist(), strict=True):
        yield names[i].strip(), p, names[j].strip(), q


@pytest.mark.parametrize("to", ["csv", "tracks"])
@RELAXED
@given(problem=labellings(weights=False, coordinates=False))
def test_one_flat_file_of_parquet_holds_all(tmp_path, problem, to):
    pytest.importorskip("pyarrow", reason="Parquet needs the extra tables")
    io.write(problem, tmp_path / "a.parquet", to, force=True)
    assert (tmp_path / "a.parquet").is_file()
    assert io.detect(tmp_path / "a.parquet").name == to
    assert io.read(tmp_path / "a.parquet") == problem


@RELAXED
@given(problem=labellings(weights=False))
def test_tracks_round_trip(tmp_path, problem):
    io.write(problem, tmp_path / "a.csv", "tracks", force=True, plain=False)
    assert io.detect(tmp_path / "a.csv").name == "tracks"
    assert io.read(tmp_path / "a.csv") == problem


@pytest.mark.parametrize("ending", ["npz", "csv"])
def test_indices_past_16_bits(tmp_path, ending):
    problem = Matchings.from_pairs({(0, 2): [[70_000, 65_536], [65_535, 70_001]]}, [70_001, 0, 70_002])
    io.write(problem, tmp_path / f"a.{ending}", force=True, **({"plain": False} if ending == "csv" else {}))
    assert io.read(tmp_path / f"a.{ending}") == problem


def test_tsv_has_tabs(tmp_path):
    io.write(SMALL, tmp_path / "a.tsv")
    assert (tmp_path / "a.tsv").read_text().splitlines()[0] == "object_a\tpoint_a\tobject_b\tpoint_b"


def test_many_chunks_of_lines(tmp_path, monkeypatch):
    monkeypatch.setattr(csv_table, "CHUNK", 7)
    rng = np.random.default_rng(0)
    labels = np.concatenate([rng.permutation(20) for _ in range(6)])
    problem = Matchings.from_labels(labels, [20] * 6, names=[f"image_{i:03}.jpg" for i in range(6)])
    io.write(problem, tmp_path / "a.csv")
    assert io.read(tmp_path / "a.csv") == problem
    lines = (tmp_path / "a.csv").read_text().splitlines()
    lines[40] = "image_000.jpg,1,image_001.jpg"
    (tmp_path / "a.csv").write_text("\n".join(lines))
    with pytest.raises(FormatError, match="line 41: 3 fields"):
        io.read(tmp_path / "a.csv")


def test_truth_is_kept(tmp_path):
    io.write(SMALL, tmp_path / "a.npz", truth=np.array([0, 1, 1, 0, 1]))
    assert io.read_truth(tmp_path / "a.npz").tolist() == [0, 1, 1, 0, 1]
    assert io.read(tmp_path / "a.npz") == SMALL
    io.write(SMALL, tmp_path / "b.npz")
    assert io.read_truth(tmp_path / "b.npz") is None
    with pytest.raises(InputError, match="5 points need 5 whole numbers as true labels"):
        io.write(SMALL, tmp_path / "c.npz", truth=np.array([0, 1]))


def test_scipy_matrix_with_sizes(tmp_path):
    W = SMALL.to_matrix()
    sparse.save_npz(tmp_path / "W.npz", W)
    assert io.read(tmp_path / "W.npz", sizes=[2, 2, 1]) == SMALL
    with pytest.raises(FormatError, match="holds no array 'sizes'"):
        io.read(tmp_path / "W.npz")
    np.savez(tmp_path / "dense.npz", W=W.toarray(), sizes=[2, 2, 1])
    assert io.read(tmp_path / "dense.npz") == SMALL
    for matrix in (W.tocsr(), W.tocsc(), W.tocoo(), W.tobsr(), W.todia()):
        sparse.save_npz(tmp_path / "W.npz", matrix)
        assert io.read(tmp_path / "W.npz", sizes=[2, 2, 1]) == SMALL


# ---------------------------------------------------------------- tables by hand


def table(tmp_path, text, **options):
    (tmp_path / "hand.csv").write_text(text, encoding="utf-8")
    return io.read(tmp_path / "hand.csv", **options)


HEAD = "object_a,point_a,object_b,point_b\n"


def test_names_are_kept_and_sorted(tmp_path):
    problem = table(tmp_path, HEAD + "b.jpg,3,a.jpg,0\nc.jpg,1,b.jpg,2\n")
    assert problem.names == ("a.jpg", "b.jpg", "c.jpg")
    assert problem.sizes.tolist() == [1, 4, 2]
    assert problem.pair(0, 1).tolist() == [[0, 3]]


def test_numbers_that_do_not_count_from_zero_are_names(tmp_path):
    problem = table(tmp_path, HEAD + "10,0,9,1\n")
    assert problem.names == ("9", "10")
    assert table(tmp_path, HEAD + "0,0,1,1\n").names is None


def test_columns_in_any_order_blank_lines_and_spaces(tmp_path):
    problem = table(tmp_path, "point_a, point_b, weight, object_a, object_b\n\n2, 0, 0.5, x, y\n\n")
    assert problem.pairs()[0, 1].tolist() == [[2, 0]]
    assert problem.weights.tolist() == [0.5]
    assert problem.names == ("x", "y")


@pytest.mark.parametrize("names", ["", "# names,mug,vase\n", "# names , mug , vase\n"])
def test_spaces_around_names_are_ignored(tmp_path, names):
    problem = table(tmp_path, names + " object_a , point_a , object_b , point_b \nmug , 1 , vase , 0\n vase,1, mug,0\n")
    assert problem.pair(0, 1).tolist() == [[0, 1], [1, 0]]
    assert [name.strip() for name in problem.names] == ["mug", "vase"]
    tracks = table(tmp_path, names + "track , object , point\n 1 , mug , 0\n1, vase , 1\n -1 , mug , 1\n-1,vase,0\n")
    assert tracks.pair(0, 1).tolist() == [[0, 1]]


def test_the_caller_may_say_the_sizes(tmp_path):
    assert table(tmp_path, HEAD + "0,0,1,1\n", sizes=[5, 6]).sizes.tolist() == [5, 6]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (HEAD + "0,0,1,0\n0,1,1\n", "hand.csv, line 3: 3 fields where the header has 4"),
        (HEAD + "0,0,1,0\n\n0,x,1,1\n", "hand.csv, line 4: point_a is 'x'; it must be a whole number"),
        (HEAD + "0,0,1,-1\n", "hand.csv, line 2: point_b is '-1'; points are numbered from 0"),
        (HEAD + "0,1.5,1,1\n", "hand.csv, line 2: point_a is '1.5'; it must be a whole number"),
        (HEAD + f"0,{2**80},1,1\n", "line 2: point_a is '1208925819614629174706176'; points are numbered from 0"),
        (HEAD[:-1] + ",weight\n0,0,1,0,nan\n", "line 2: weight is 'nan'; a weight must be positive and finite"),
        (HEAD[:-1] + ",weight\n0,0,1,0,heavy\n", "line 2: weight is 'heavy'; it must be a number"),
        (HEAD[:-1] + ",weights\n0,0,1,0,1\n", "unknown column 'weights'; did you mean 'weight'?"),
        ("object_a,point_a,object_b\n", "has no column 'point_b'"),
        ("# sizes,2,2\n" + HEAD + "0,0,1,0\n0,1,7,0\n", "hand.csv, line 4: unknown object '7'"),
        ("# sizes,2,2\n" + HEAD + "0,0,1,2\n", "hand.csv, line 3: point 2 of object 1 does not exist; it has 2 points"),
        (HEAD + "mug,0,vase,0\n\nvase,0,vase,1\n", "line 4: pair (1, 1) matches object 1 ('vase') with itself"),
        ("# sizes,2,two\n" + HEAD, "hand.csv, line 1: 'two' is not a whole number"),
        ("# names,a,a\n" + HEAD, "one different name per object"),
        (HEAD + "0,0,0,1\n", "matches object 0 with itself"),
        (HEAD + "0,0,1,0\n0,0,1,0\n", "hand.csv, line 3: the match of point 0 of object 0 with"),
        (HEAD + "b,0,c,1\nb,1,a,0\n\na,0,b,1\n", "line 5: the match of point 0 of object 0 ('a') with point 1"),
        (HEAD + "b,0,c,1\na,0,b,0\na,1,b,0\n", "line 4: point 0 of object 1 ('b') is matched to more than one"),
        (HEAD[:-1] + ",weight\na,0,b,0,1\na,0,b,1,2\n", "line 2: point 0 of object 0 ('a') is matched to more"),
        (HEAD + '0,0,"1,0\n', "hand.csv, line 2: "),
        ("", "hand.csv is empty"),
        (
            "a,0,b,1\n",
            "a table needs the header object_a,point_a,object_b,point_b[,weight] or track,object,point[,x,y]",
        ),
        (HEAD + f"a,{10**9 - 1},b,1\n", "mentions at most 2 points of 1,000,000,002; number the points of"),
        (
            HEAD[:-1] + ",note\na,0,b,1,hm\n",
            "unknown column 'note'; known: object_a, point_a, object_b, point_b, weight;",
        ),
        ("track,object,point\n1,a,0\n2,a,0\n", "line 3: point 0 of object 0 ('a') is listed twice"),
        ("track,object,point\n\n7,a,0\n-1,a,3\n-1,a,4\n 7 ,a,1\n", "line 6: track 7 has two points of object 0 ('a')"),
        (
            "# sizes,1\ntrack,object,point\n1,0,1\n",
            "hand.csv, line 3: point 1 of object 0 does not exist; it has 1 point,",
        ),
    ],
)
def test_bad_tables_say_where(tmp_path, text, message):
    with pytest.raises(FormatError) as caught:
        table(tmp_path, text)
    assert message in str(caught.value)


def test_not_text(tmp_path):
    (tmp_path / "a.csv").write_bytes(HEAD.encode() + b"\xff\xfe,0,1,0\n")
    with pytest.raises(FormatError, match="UTF-8"):
        io.read(tmp_path / "a.csv", "csv")


def test_one_to_many_is_repaired_on_request(tmp_path):
    problem = table(tmp_path, HEAD + "0,0,1,0\n0,0,1,1\n", one_to_many="repair")
    assert problem.n_matches == 1
    assert problem.repair.second_partners == 1


def test_names_a_table_cannot_hold(tmp_path):
    for names, message in ((["a\nb", "c"], "has a line break"), (["a", "a"], "two objects are named 'a'")):
        with pytest.raises(InputError, match=message):
            io.write(Matchings.from_labels([0, 0], [1, 1], names=names), tmp_path / "a.csv")
    assert not list(tmp_path.iterdir())


def test_matches_that_contradict_each_other_form_no_tracks(tmp_path):
    broken = Matchings.from_pairs({(0, 1): [[0, 0]], (1, 2): [[0, 0]], (0, 2): [[1, 0]]}, [2, 1, 1])
    with pytest.raises(InputError, match=r"contradict each other \(1 conflict\), so they form no tracks"):
        io.write(broken, tmp_path / "a.csv", "tracks")
    assert not list(tmp_path.iterdir())


def test_tracks_of_matches_hold_what_follows_and_convert_says_so(tmp_path):
    chain = Matchings.from_pairs({(0, 1): [[0, 0]], (1, 2): [[0, 0]]}, [2, 1, 1])
    io.write(chain, tmp_path / "chain.npz")
    said = io.convert(tmp_path / "chain.npz", tmp_path / "a.csv", target_format="tracks")
    assert said == [
        "A CSV file of tracks also holds what follows from the matches: 1 more.",
        "A plain CSV file of tracks tells of no points behind the last one matched: 1 point left out.",
        "With plain=False it does, in lines before its header.",
    ]
    assert io.read(tmp_path / "a.csv") == Matchings.from_labels([0, 0, 0], [1, 1, 1])
    said = io.convert(tmp_path / "chain.npz", tmp_path / "b.csv", target_format="tracks", plain=False)
    assert said == ["A CSV file of tracks also holds what follows from the matches: 1 more."]
    assert io.read(tmp_path / "b.csv") == Matchings.from_labels([0, -1, 0, 0], [2, 1, 1])


def test_a_point_alone_is_no_track(tmp_path):
    io.write(answer_with([0, 1, 2, 0, 3]), tmp_path / "a.csv", "tracks")
    assert (tmp_path / "a.csv").read_text().splitlines() == ["track,object,point,confidence", "0,0,0,0.5", "0,1,1,0.5"]


@pytest.mark.parametrize(
    "text",
    [
        HEAD.replace(",", ";") + "x;0;y;1\n",
        HEAD.replace(",", "\t") + "x\t0\ty\t1\n",
        "\ufeff" + HEAD.replace("\n", "\r\n") + "x,0,y,1\r\n",
        "#notes of mine\n" + HEAD.upper() + "\n   \nx,0,y,1\n,,,\n",
        '"object_a","point_a","object_b","point_b"\n"x","0","y","1"\n',
    ],
    ids=["semicolons", "tabs", "mark and line ends of Windows", "notes and blank lines", "quotes"],
)
def test_tables_as_other_programs_write_them(tmp_path, text):
    assert table(tmp_path, text) == Matchings.from_pairs({(0, 1): [[0, 1]]}, [1, 2], names=["x", "y"])


def test_text_after_a_closing_quote_is_refused_not_joined(tmp_path):
    with pytest.raises(FormatError, match=r"hand\.csv, (after )?line \d+: ',' expected after '\"'$"):
        table(tmp_path, HEAD + '"x"y,0,z,1\n')


# ---------------------------------------------------------------- archives


@pytest.mark.parametrize("share", [0.3, 0.7, 0.95])
def test_truncated_npz(tmp_path, share):
    io.write(SMALL, tmp_path / "a.npz")
    data = (tmp_path / "a.npz").read_bytes()
    (tmp_path / "a.npz").write_bytes(data[: int(share * len(data))])
    with pytest.raises(FormatError, match="not a complete NPZ file"):
        io.read(tmp_path / "a.npz")


def test_damaged_npz(tmp_path):
    io.write(SMALL, tmp_path / "a.npz")
    data = bytearray((tmp_path / "a.npz").read_bytes())
    at = data.index(b"sizes.npy") + 20
    data[at : at + 30] = bytes(30)
    (tmp_path / "a.npz").write_bytes(data)
    with pytest.raises(FormatError, match="not a complete NPZ file"):
        io.read(tmp_path / "a.npz")


def test_pickles_are_refused(tmp_path):
    np.savez(tmp_path / "a.npz", sizes=np.array([2, None], dtype=object))
    with pytest.raises(FormatError, match="holds pickled Python objects"):
        io.read(tmp_path / "a.npz")


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"indices": np.zeros((2, 2), dtype=int)}, "contradicts itself"),
        ({"pair_start": np.array([1, 2, 3])}, "contradicts itself"),
        ({"pair_start": np.array([0.0, 2.0, 3.0])}, "pair_start must be whole numbers, got float64"),
        ({"sizes": np.array([2, 2, -1])}, "negative size"),
        ({"sizes": np.array([2, 1, 1])}, "does not exist"),
        ({"weights": np.array([1.0, np.nan, 1.0])}, "weight 1 is nan"),
        ({"names": np.array(["a"])}, "3 objects need 3 names"),
        ({"coordinates": np.zeros((1, 2))}, "coordinates must have shape"),
    ],
)
def test_arrays_that_do_not_fit(tmp_path, arrays, message):
    parts = {name: getattr(SMALL, name) for name in ("sizes", "pair_objects", "pair_start", "indices")}
    np.savez(tmp_path / "a.npz", **{**parts, **arrays})
    with pytest.raises(FormatError, match=message):
        io.read(tmp_path / "a.npz")


@pytest.mark.parametrize(
    ("entry", "message"), [((0, 3, 0), "must be symmetric"), ((0, 3, 2), "must be binary"), ((0, 1, 1), "with itself")]
)
def test_matrices_that_are_none(tmp_path, entry, message):
    row, col, value = entry
    W = SMALL.to_matrix().toarray()
    W[row, col] = value
    if value:
        W[col, row] = value
    np.savez(tmp_path / "a.npz", W=W, sizes=[2, 2, 1])
    with pytest.raises(FormatError, match=message):
        io.read(tmp_path / "a.npz")


# ---------------------------------------------------------------- files


def test_what_is_written_of_an_answer(tmp_path):
    answer = answer_with([0, 1, 1, 0, 1])
    io.write(answer, tmp_path / "all.csv")
    assert io.read(tmp_path / "all.csv") == answer.matchings()
    io.write(answer, tmp_path / "kept.csv", add=False)
    kept = io.read(tmp_path / "kept.csv")
    assert {key: block.tolist() for key, block in kept.pairs().items()} == {
        (0, 1): [[0, 1], [1, 0]],
        (1, 2): [[0, 0]],
    }
    io.write(answer, tmp_path / "tracks.csv", "tracks")
    assert io.read(tmp_path / "tracks.csv") == answer.matchings()


def test_an_answer_without_labels(tmp_path):
    partial = SMALL.keep([False, True, True])
    answer = Synchronisation(SMALL, "by hand", Outcome(matchings=partial), 2)
    for add in (True, False):
        io.write(answer, tmp_path / "a.csv", add=add, force=True, plain=False)
        assert io.read(tmp_path / "a.csv") == partial
    io.write(answer, tmp_path / "b.csv", "tracks", plain=False)
    assert io.read(tmp_path / "b.csv") == Matchings.from_labels([-1, 0, 0, -1, 0], [2, 2, 1])


def test_the_output_is_not_the_input(tmp_path):
    io.write(SMALL, tmp_path / "a.csv")
    before = (tmp_path / "a.csv").read_bytes()
    (tmp_path / "link.csv").symlink_to(tmp_path / "a.csv")
    for name in ("a.csv", "link.csv"):
        with pytest.raises(InputError, match="is the input itself"):
            io.write(SMALL, tmp_path / name, like=tmp_path / "a.csv")
    assert (tmp_path / "a.csv").read_bytes() == before


def test_unwritable_places(tmp_path):
    with pytest.raises(InputError, match="does not exist; make it first"):
        io.write(SMALL, tmp_path / "no" / "a.csv")
    with pytest.raises(InputError, match="is a device, not a file"):
        io.write(SMALL, os.devnull, "csv")
    with pytest.raises(InputError, match="is a folder"):
        io.write(SMALL, tmp_path, "csv")
    if os.geteuid():  # the superuser may write anywhere
        tmp_path.chmod(0o500)
        with pytest.raises(InputError, match="is not writable; choose another output"):
            io.write(SMALL, tmp_path / "a.csv")
        tmp_path.chmod(0o700)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("failure", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt()])
def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch, failure):
    io.write(SMALL, tmp_path / "a.npz")
    before = (tmp_path / "a.npz").read_bytes()

    def fail(file, **arrays):
        file.write(b"half")
        raise failure

    monkeypatch.setattr(np, "savez_compressed", fail)
    with pytest.raises((InputError, KeyboardInterrupt)) as caught:
        io.write(SMALL[:2], tmp_path / "a.npz", force=True)
    if isinstance(failure, OSError):
        assert "cannot be written: No space left on device; nothing was written" in str(caught.value)
    assert [file.name for file in tmp_path.iterdir()] == ["a.npz"]
    assert (tmp_path / "a.npz").read_bytes() == before


def test_new_files_have_the_usual_permissions(tmp_path):
    io.write(SMALL, tmp_path / "a.csv")
    (tmp_path / "b.csv").touch()
    assert (tmp_path / "a.csv").stat().st_mode == (tmp_path / "b.csv").stat().st_mode


def test_unknown_things(tmp_path):
    with pytest.raises(InputError, match="does not exist"):
        io.read(tmp_path / "none.csv")
    (tmp_path / "a.xyz").write_text("hello")
    with pytest.raises(FormatError, match="none of the known formats"):
        io.read(tmp_path / "a.xyz")
    with pytest.raises(InputError, match="unknown format 'cvs'; did you mean 'csv'"):
        io.read(tmp_path / "a.xyz", "cvs")
    with pytest.raises(InputError, match="tells no format"):
        io.write(SMALL, tmp_path / "b.xyz")
    with pytest.raises(InputError, match="unknown option of format 'csv' 'size'; did you mean 'sizes'"):
        io.read(tmp_path / "a.xyz", "csv", size=[1])
    with pytest.raises(InputError, match="unknown option of format 'csv' 'truth'"):
        io.write(SMALL, tmp_path / "a.csv", truth=[0])
    with pytest.raises(InputError, match="got list"):
        io.write([1], tmp_path / "a.csv")


def test_convert_says_what_is_lost(tmp_path):
    problem = Matchings.from_labels([0, 0], [1, 1], coordinates=[[1, 2], [3, 4]], names=["a", "b"]).with_weights([0.5])
    io.write(problem, tmp_path / "a.npz", force=True)
    assert io.convert(tmp_path / "a.npz", tmp_path / "a.csv") == ["A CSV file of matches holds no point coordinates."]
    assert io.convert(tmp_path / "a.npz", tmp_path / "t.csv", target_format="tracks") == [
        "A CSV file of tracks holds no weights: every match counts the same."
    ]
    assert io.convert(tmp_path / "a.npz", tmp_path / "b.npz") == []
    assert io.read(tmp_path / "b.npz") == problem


def test_an_answer_with_points_in_no_track_is_read_back(tmp_path):
    """Their confidence is unknown, and its cell empty."""
    problem = Matchings.from_labels([0, -1, 0, -1], [2, 2], names=["a", "b"], coordinates=[[1, 2], [3, 4]] * 2)
    answer = Synchronisation(problem, "own", Outcome(labels=np.array([0, -1, 0, -1])), 1)
    io.write(answer, tmp_path / "tracks.csv", "tracks")
    assert "-1,a,1,3,4,\n" in (tmp_path / "tracks.csv").read_text(encoding="utf-8")
    assert io.read(tmp_path / "tracks.csv") == problem
