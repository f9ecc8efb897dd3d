"""Tables of records: in as linkage programs write them, out as data frames open them, errors name the line."""

from __future__ import annotations

import hashlib
import json
import os

import numpy as np
import pytest

from stiefelsync import FormatError, InputError, Matchings, __version__, clean, datasets, io, synchronise
from stiefelsync.errors import MissingExtraError
from stiefelsync.io.tables import files
from stiefelsync.io.tables.files import Coded, header, read_columns, write_columns

pyarrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")

CLEAN = datasets.records(60, sources=3, rng=0)
DIRTY = datasets.records(60, sources=3, duplicates=0.3, rng=0)


@pytest.fixture(params=["quick", "plain"])
def reader(request, monkeypatch):
    """Read text as Arrow does, and as Python does where Arrow is not installed."""
    if request.param == "plain":

        def missing(why="Parquet"):
            raise MissingExtraError(why, "pyarrow", "tables")

        monkeypatch.setattr(files, "_arrow", missing)
    return request.param


def save(table, path):
    if path.suffix == ".parquet":
        parquet.write_table(pyarrow.table(table), path)
    else:
        write_columns(path, {name: np.asarray(column) for name, column in table.items()})
    return path


def text(path, content):
    path.write_text(content, encoding="utf-8")
    return path


@pytest.mark.parametrize("ending", ["csv", "tsv", "parquet"])
@pytest.mark.parametrize("drawn", [CLEAN, DIRTY], ids=["clean", "duplicates"])
def test_a_table_of_a_linkage_program_goes_in_and_clusters_come_out(drawn, ending, tmp_path):
    source = save(drawn.pairs, tmp_path / f"edges.{ending}")
    done = clean(source, tmp_path / f"clusters.{ending}")
    assert io.detect(source).name == "edges"
    assert io.detect(done.output).name == "clusters"
    pandas = pytest.importorskip("pandas")
    opened = {"csv": pandas.read_csv, "tsv": pandas.read_table, "parquet": pandas.read_parquet}[ending](done.output)
    assert list(opened.columns) == ["cluster_id", "source_dataset", "unique_id", "confidence"]
    problem = Matchings.from_table(drawn.pairs)
    assert len(opened) == len(problem.records) == len(opened[["source_dataset", "unique_id"]].drop_duplicates())
    assert opened.confidence.between(0, 1).all()
    # The clusters of the file are those of the answer.
    numbers = {
        key: n for n, key in enumerate(zip(*(c.tolist() for c in problem.records.columns().values()), strict=True))
    }
    rows = [numbers[key] for key in zip(opened.source_dataset, opened.unique_id, strict=True)]
    labels = done.result.labels[rows]
    pairs = set(zip(opened.cluster_id.tolist(), labels.tolist(), strict=True))
    kept = {(c, n) for c, n in pairs if n >= 0}
    assert len({c for c, _ in kept}) == len({n for _, n in kept}) == len(kept)


@pytest.mark.parametrize("library", ["pandas", "polars", "duckdb"])
@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize("to", ["clusters", "edges"])
def test_every_library_opens_every_output_without_options(library, ending, to, tmp_path):
    module = pytest.importorskip(library)
    source = save(DIRTY.pairs, tmp_path / "edges.csv")
    path = clean(source, tmp_path / f"out.{ending}", to=to).output
    opened = {
        "pandas": lambda: getattr(module, f"read_{ending}")(path),
        "polars": lambda: getattr(module, f"read_{ending}")(path),
        "duckdb": lambda: getattr(module, f"read_{ending}")(str(path)).df(),
    }[library]()
    first = {"clusters": "cluster_id", "edges": "source_dataset_l"}[to]
    assert next(iter(opened.columns)) == first
    result = synchronise(Matchings.from_table(DIRTY.pairs))
    assert len(opened) == (len(result.input.records) if to == "clusters" else result.matchings().n_matches)


def test_ids_come_back_as_they_were(tmp_path, reader):
    path = text(tmp_path / "a.csv", 'id_left,id_right,score\n007,"x, y",0.9\n007,é,0.8\n')
    problem = io.read(path)
    assert problem.records.ids.tolist() == ["007", "x, y", "é"]
    io.write(synchronise(problem), tmp_path / "b.csv", "clusters")
    again = io.read(tmp_path / "b.csv")
    assert again.records.ids.tolist() == ["007", "x, y", "é"]
    assert again.sizes.tolist() == [1, 1, 1]


def test_whole_numbers_stay_whole_numbers_in_parquet(tmp_path):
    table = {"unique_id_l": [3, 3], "unique_id_r": [10, 4], "match_probability": [0.9, 0.2]}
    io.write(synchronise(io.read(save(table, tmp_path / "a.parquet"))), tmp_path / "b.parquet", "clusters")
    opened = parquet.read_table(tmp_path / "b.parquet")
    assert opened.schema.field("unique_id").type == pyarrow.int64()
    assert opened.column("unique_id").to_pylist() == [3, 10, 4]
    assert opened.column("cluster_id").to_pylist() == [0, 0, 1]


def test_other_names_are_told_and_choose_the_format(tmp_path):
    path = text(tmp_path / "a.csv", "who,whom,sure\na,b,0.9\n")
    with pytest.raises(FormatError, match=r"in none of the known formats; .* any with columns=id,id,score"):
        io.read(path)
    assert io.read(path, columns="who,whom,sure").n_matches == 1
    with pytest.raises(FormatError, match="there is no column 'x'; there are who, whom, sure"):
        io.read(path, columns="who,whom,x")
    with pytest.raises(
        FormatError, match=r"has no columns of ids and scores that are known by name \(who, whom, sure\)"
    ):
        io.read(path, "edges")


ERRORS = {
    "a score that is none": ("id1,id2,score\na,b,0.5\n\na,c,much\n", "line 4: score is 'much'; it must be a number"),
    "an improbable score": ("id1,id2,score\na,b,0.5\na,c,1.5\n", "line 3: score is 1.5; scores are taken for prob"),
    "no score": ("id1,id2,score\na,b,\n", "line 2: score is empty"),
    "no id": ("id1,id2,score\na,b,0.5\n,b,0.5\n", "line 3: id1 is empty"),
    "a short row": ("id1,id2,score\na,b\n", "line 2: 2 fields where the header has 3"),
    "one record twice": ("id1,id2,score\na,b,0.5\nc,c,0.5\n", "line 3: the record 'c' is paired with itself"),
    "two columns of a name": ("id1,id2,score,id1\na,b,0.5,q\n", "has two columns 'id1'"),
    "digits of another script": ("id1,id2,score\na,b,٠.5\n", "line 2: score is '٠.5'; it must be a number"),
    "an open quotation": ('id1,id2,score\n"a,b,0.5\n', "line 2: unexpected end of data"),
}


@pytest.mark.parametrize("case", ERRORS)
def test_errors_name_the_line_however_the_file_is_read(case, tmp_path, reader):
    content, message = ERRORS[case]
    with pytest.raises(FormatError) as caught:
        io.read(text(tmp_path / "a.csv", content))
    assert message in str(caught.value)
    assert str(tmp_path / "a.csv") in str(caught.value)


def test_bytes_that_are_no_text(tmp_path, reader):
    (tmp_path / "a.csv").write_bytes(b"id1,id2,score\n\xff,b,0.5\n")
    with pytest.raises(FormatError, match="is not UTF-8 text"):
        io.read(tmp_path / "a.csv", "edges")


def test_errors_in_parquet_name_the_row(tmp_path):
    table = {"id1": ["a", "b"], "id2": ["c", None], "score": [0.5, 0.5]}
    with pytest.raises(FormatError, match="row 2: id2 is empty"):
        io.read(save(table, tmp_path / "a.parquet"))
    with pytest.raises(FormatError, match="'score' does not hold numbers"):
        io.read(save({"id1": ["a"], "id2": ["b"], "score": ["x"]}, tmp_path / "b.parquet"))
    (tmp_path / "c.parquet").write_bytes((tmp_path / "a.parquet").read_bytes()[:-20])
    with pytest.raises(FormatError, match="not a complete Parquet file"):
        io.read(tmp_path / "c.parquet")


def test_parquet_that_asks_for_more_than_it_holds_is_refused(tmp_path):
    # One long text for every row, packed to next to nothing.
    rows = 200_000
    texts = pyarrow.DictionaryArray.from_arrays(pyarrow.array(np.zeros(rows, np.int32)), pyarrow.array(["x" * 10_000]))
    table = pyarrow.table(
        {"id1": texts.cast(pyarrow.string()), "id2": texts.cast(pyarrow.string()), "score": np.ones(rows)}
    )
    parquet.write_table(table, tmp_path / "a.parquet")
    assert os.path.getsize(tmp_path / "a.parquet") < 100_000
    with pytest.raises(FormatError, match=r"would take .* bytes, which a file of .* bytes does not hold"):
        io.read(tmp_path / "a.parquet")


def test_pipes_and_folders_are_no_tables(tmp_path):
    os.mkfifo(tmp_path / "pipe.csv")
    with pytest.raises(InputError, match="pipe"):
        io.read(tmp_path / "pipe.csv", "edges")
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(FormatError):
        io.read(tmp_path / "folder.csv", "clusters")


@pytest.mark.parametrize("quotes", [False, True])
def test_quick_and_plain_reading_and_writing_agree(quotes, tmp_path, monkeypatch):
    pairs = {name: column[:200] for name, column in DIRTY.pairs.items()}
    if quotes:
        pairs["unique_id_l"] = np.array([f'{value}, "{n}"\nline' for n, value in enumerate(pairs["unique_id_l"])])
    columns = pairs | {"empty": np.array([np.nan, 2.0] * 100), "few": Coded(["p", "q"], np.arange(200) % 2)}
    write_columns(tmp_path / "quick.csv", columns)
    found = header(tmp_path / "quick.csv")
    names = [name for name in pairs if name != "match_probability"]
    quick = read_columns(tmp_path / "quick.csv", found, names, ["match_probability", "empty"])
    first = io.read(tmp_path / "quick.csv")

    def missing(why="Parquet"):
        raise MissingExtraError(why, "pyarrow", "tables")

    monkeypatch.setattr(files, "_arrow", missing)
    write_columns(tmp_path / "plain.csv", columns)
    assert (tmp_path / "plain.csv").read_bytes() == (tmp_path / "quick.csv").read_bytes()
    plain = read_columns(tmp_path / "quick.csv", found, names, ["match_probability", "empty"])
    for name in names:
        assert quick[name].to_pylist() == plain[name].tolist() == list(pairs[name])
    for name in ("match_probability", "empty"):
        assert np.array_equal(quick[name].to_numpy(), plain[name], equal_nan=True)
    again = io.read(tmp_path / "quick.csv")
    assert again == first
    assert again.records.ids.tolist() == first.records.ids.tolist()


def test_without_pyarrow_parquet_names_the_extra(tmp_path, monkeypatch):
    save(CLEAN.pairs, tmp_path / "a.parquet")

    def missing(why="Parquet"):
        raise MissingExtraError(why, "pyarrow", "tables")

    monkeypatch.setattr(files, "_arrow", missing)
    with pytest.raises(MissingExtraError, match=r'pip install "stiefelsync\[tables\]"'):
        io.read(tmp_path / "a.parquet")


def test_clusters_of_clean_sources_and_of_others(tmp_path, reader):
    path = text(tmp_path / "a.csv", "cluster_id,source_dataset,unique_id\nx,a,1\nx,b,1\ny,a,2\n")
    problem = io.read(path)
    assert problem.sizes.tolist() == [2, 1]
    assert problem.names == ("a", "b")
    assert problem.pair(0, 1).tolist() == [[0, 0]]
    path.write_text("cluster_id,source_dataset,unique_id\nx,a,1\nx,a,2\ny,b,1\n")
    assert io.read(path).sizes.tolist() == [1, 1, 1]
    path.write_text("cluster_id,unique_id\nx,1\nx,1\n")
    with pytest.raises(FormatError, match="line 3: the record '1' is listed twice"):
        io.read(path)


def test_any_problem_can_be_written_as_clusters_and_as_pairs(tmp_path):
    problem, _ = datasets.synthetic(6, 4, 0.8, 0.0, rng=0)
    io.write(problem, tmp_path / "c.csv", "clusters")
    assert io.read(tmp_path / "c.csv").n_matches == problem.n_matches
    io.write(problem, tmp_path / "e.csv", "edges")
    assert io.read(tmp_path / "e.csv").n_matches == problem.n_matches
    with pytest.raises(InputError, match="contradict each other"):
        io.write(datasets.synthetic(6, 4, 0.8, 0.5, rng=0)[0], tmp_path / "d.csv", "clusters")


def test_parquet_says_what_made_it(tmp_path):
    source = save(DIRTY.pairs, tmp_path / "edges.csv")
    clean(source, tmp_path / "out.parquet", rng=7, threshold=0.1)
    told = json.loads(parquet.read_schema(tmp_path / "out.parquet").metadata[b"stiefelsync"])
    assert told["method"] == "correlation"
    assert told["options"] == {"threshold": 0.1}
    assert told["seed"] == 7
    assert told["input"]["name"] == "edges.csv"
    assert len(told["input"]["sha256"]) == 64
    clean(source, tmp_path / "again.parquet", rng=7, threshold=0.1)
    assert (tmp_path / "again.parquet").read_bytes() == (tmp_path / "out.parquet").read_bytes()


def said_by(path):
    """Return what a file says of what made it."""
    if path.suffix == ".npz":
        with np.load(path) as arrays:
            return json.loads(str(arrays["made_by"]))
    if path.suffix == ".mat":
        return json.loads(pytest.importorskip("scipy.io").loadmat(path)["made_by"].item())
    if path.suffix == ".h5":
        with pytest.importorskip("h5py").File(path) as file:
            return json.loads(file.attrs["made_by"])
    inside = path / "labels.parquet" if path.is_dir() else path
    return json.loads(parquet.read_schema(inside).metadata[b"stiefelsync"])


@pytest.mark.parametrize("ending", ["npz", "mat", "h5", "dataset", "parquet"])
def test_files_with_a_place_for_it_say_what_made_them(ending, tmp_path):
    if ending == "h5":
        pytest.importorskip("h5py")
    problem, _ = datasets.synthetic(6, 4, 0.8, 0.2, rng=0)
    io.write(problem, tmp_path / "a.npz")
    clean(tmp_path / "a.npz", tmp_path / f"out.{ending}", method="tracks", neighbours=0, rng=3)
    told = said_by(tmp_path / f"out.{ending}")
    digest = hashlib.sha256((tmp_path / "a.npz").read_bytes()).hexdigest()
    assert told.items() >= {
        "program": "stiefelsync", "version": __version__, "method": "tracks", "options": {"neighbours": 0}, "seed": 3,
        "input": {"name": "a.npz", "sha256": digest},
    }.items()  # fmt: skip
    io.write(synchronise(problem, method="tracks"), tmp_path / f"plain.{ending}")
    told = said_by(tmp_path / f"plain.{ending}")
    assert {name: told[name] for name in ("program", "version", "method")} == {
        "program": "stiefelsync", "version": __version__, "method": "tracks",
    }  # fmt: skip
    assert "options" not in told
    assert io.read(tmp_path / f"plain.{ending}").n_matches


def test_clean_says_why_it_chose(tmp_path):
    advice = clean(save(DIRTY.pairs, tmp_path / "a.csv"), tmp_path / "b.csv").advice
    assert advice == (
        "Method correlation was chosen: all sources may hold duplicates, since pairs inside are scored or you said so; "
        "duplicates='no' denies it.",
    )
    assert clean(save(CLEAN.pairs, tmp_path / "c.csv"), tmp_path / "d.csv").advice == ()
    one = text(tmp_path / "e.csv", "id1,id2,score\na,b,0.9\n")
    assert clean(one, tmp_path / "f.csv").advice == (
        "Method correlation was chosen: all records are of one source, which holds duplicates.",
    )


HEADERS = [
    "id_x,id_y,score", "ltable_id,rtable_id,similarity", "source,target,weight", "ID_A,ID_B,Probability",
    "rec_id_1,rec_id_2,prob", "first,second,p", "key_0,key_1,match_score", "patient_l,patient_r,confidence",
]  # fmt: skip


@pytest.mark.parametrize("names", HEADERS)
def test_columns_are_found_under_many_names(names, tmp_path, reader):
    path = text(tmp_path / "edges.csv", f"{names}\n007,b,0.9\nb,c,0.8\n")
    assert io.detect(path).name == "edges"
    assert io.read(path).records.ids.tolist() == ["007", "b", "c"]


@pytest.mark.parametrize(
    "names", ["cell,confidence,day_1,day_2", "image_a,image_b,score", "name_l,name_r,city_l,city_r,score", "a,b,c"]
)
def test_other_tables_are_not_taken_for_pairs(names, tmp_path):
    path = text(tmp_path / "a.csv", names + "\n" + ",".join(["1"] * (names.count(",") + 1)) + "\n")
    with pytest.raises(FormatError):
        io.read(path)


def test_what_is_wrong_is_said_as_it_is_typed(tmp_path):
    from typer.testing import CliRunner

    from stiefelsync.cli.app import app

    cases = {
        "id_1,id_2,score\n7,7,0.9\n": "name these with --option sources=left,right",
        "x,y,z\n1,2,0.9\n": "or any with --columns id,id,score",
        "id_1,id_2,score\n7,8,1.5\n": "if another column has these, name it with --columns id,id,score",
        "id_1,id_2,score\n7,8,\n": "line 2: score is empty; leave out pairs that were not scored",
        "id_1,id_2,score\n": "the table has no rows: there are no scored pairs",
    }
    for content, message in cases.items():
        path = text(tmp_path / "edges.csv", content)
        ran = CliRunner().invoke(app, ["sync", str(path), "-o", str(tmp_path / "out.csv")])
        assert ran.exit_code == 2
        assert message in " ".join(ran.stderr.split())


def linked_ids(table):
    """Ids of the clusters that a table gives, as they come back."""
    problem = Matchings.from_table(table)
    return problem.records.ids, synchronise(problem).to_frame()["unique_id"]


def test_whole_numbers_of_any_width_are_the_same_ids_and_stay_numbers():
    score = [0.9, 0.8]
    for left, right in [
        (np.array([1, 2], np.int32), np.array([2, 3])), (np.array([1, 2], np.uint64), np.array([2, 3], np.int8)),
        (np.array([1.0, 2.0]), np.array([2, 3])),
    ]:  # fmt: skip
        for table in (
            {"id_l": left, "id_r": right, "score": score},
            pyarrow.table({"id_l": left, "id_r": right, "score": score}),
        ):
            ids, back = linked_ids(table)
            assert ids.tolist() == [1, 2, 3]
            assert np.asarray(ids).dtype.kind in "iu" or {type(n) for n in ids.tolist()} == {int}
            assert list(back) == [1, 2, 3]
    assert linked_ids(pyarrow.table({"id_l": [1, 2], "id_r": ["2", "c"], "score": score}))[0].tolist() == [
        "1",
        "2",
        "c",
    ]


def test_rows_arrays_with_names_and_frames_not_computed_yet_are_tables():
    pairs = [("a", "b", 0.9), ("b", "c", 0.7)]
    whole = Matchings.from_table({"id_l": ["a", "b"], "id_r": ["b", "c"], "score": [0.9, 0.7]})
    tables = [
        [dict(zip(("id_l", "id_r", "score"), row, strict=True)) for row in pairs],
        np.array(pairs, dtype=[("id_l", "U1"), ("id_r", "U1"), ("score", "f4")]),
        np.array([(row[:2], row[2]) for row in pairs], dtype=[("pairs", "U1", 2), ("score", "f4")]),  # dedupe's scores
        {"id_l": ["a", "b"], "id_r": ["b", "c"], "score": ["0.9", "0.7"]},
        {"id_l": [("a",), ("b",)], "id_r": [("b",), ("c",)], "score": [0.9, 0.7]},
    ]
    for table in tables:
        found = Matchings.from_table(table)
        assert found.endpoints.tolist() == whole.endpoints.tolist()
        np.testing.assert_allclose(found.weights, whole.weights, rtol=1e-6)
    assert linked_ids(tables[-1])[0].tolist() == [("a",), ("b",), ("c",)]


def test_odd_columns_of_other_libraries_are_ids():
    import uuid

    polars, pandas = pytest.importorskip("polars"), pytest.importorskip("pandas")
    columns = {"id_l": ["007", "b"], "id_r": ["b", "c"], "score": [0.9, 0.8]}
    frame = polars.DataFrame(columns)
    names = [polars.col("id_l").cast(polars.Categorical), polars.col("id_r").cast(polars.Categorical)]
    for table in (frame.lazy(), frame.with_columns(names), pandas.DataFrame(columns).astype({"id_l": "category"})):
        assert linked_ids(table)[0].tolist() == ["007", "b", "c"]
    called = [uuid.UUID(int=n) for n in range(3)]
    ids, back = linked_ids(pandas.DataFrame({"id_l": called[:2], "id_r": called[1:], "score": [0.9, 0.8]}))
    assert list(ids) == list(back) == called


def test_records_of_which_no_pair_is_probable_are_alone(tmp_path):
    rows = "source_l,id_l,source_r,id_r,score\na,1,b,1,0.05\na,2,b,1,0.01\n"
    clean(text(tmp_path / "edges.csv", rows), tmp_path / "clusters.csv")
    lines = (tmp_path / "clusters.csv").read_text().splitlines()
    assert [line.rsplit(",", 1)[0] for line in lines[1:]] == ["0,a,1", "1,a,2", "2,b,1"]
    with pytest.raises(InputError, match="there are no matches to synchronise"):
        clean(tmp_path / "edges.csv", tmp_path / "other.csv", method="accurate")
    one_each = clean(text(tmp_path / "two.csv", "source_l,id_l,source_r,id_r,score\na,1,b,1,0.9\n"), tmp_path / "b.csv")
    assert not any("may hold duplicates" in sentence for sentence in one_each.advice)
