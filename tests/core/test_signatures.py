"""The table of signatures says of every kernel and struct what the C sources say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from stiefelsync._core import signatures
from stiefelsync._core.signatures import CONSTANTS, SIGNATURES, STRUCTS, parse

SOURCES = Path(signatures.__file__).parent
TEXTS = {"fingerprint", "compiler", "registers"}  # what library.py asks before anything else; they take nothing
KINDS = {
    "i4": "int32_t", "i8": "int64_t", "u1": "uint8_t", "b1": "uint8_t", "u4": "uint32_t", "u8": "uint64_t",
    "f4": "float", "f8": "double",
}  # fmt: skip
RESULTS = {"int": "int", "int64_t": "i8", "void": "void"}


def read(path: Path) -> str:
    """Return a source without comments, macros that make functions being expanded."""
    text = re.sub(r"/\*.*?\*/", " ", path.read_text(encoding="utf-8"), flags=re.DOTALL).replace("\\\n", " ")
    for name, names, body in re.findall(r"^#define (\w+)\(([^)]*)\)(.* API .*)$", text, flags=re.MULTILINE):
        for given in re.findall(rf"^{name}\(([^)]*)\)$", text, flags=re.MULTILINE):
            made = body
            for parameter, value in zip(names.split(","), given.split(","), strict=True):
                made = re.sub(rf"\b{parameter.strip()}\b", value.strip(), made)
            text += "\n" + made
    return re.sub(r"^#define.*$", "", text, flags=re.MULTILINE)


def declared(texts: list[str]) -> dict[str, str]:
    """Return functions that the library exports: name → "result: argument, argument, …", as C has them."""
    found = {}
    for text in texts:
        for result, name, arguments in re.findall(r"\bAPI (\w+) (\w+)\(([^)]*)\)\s*\{", text):
            found[name] = f"{RESULTS[result]}: " + ", ".join(" ".join(one.split()) for one in arguments.split(","))
    return found


def structs(texts: list[str]) -> dict[str, list[str]]:
    """Return the fields of every struct, each as C has it."""
    found = {}
    for text in texts:
        for body, name in re.findall(r"typedef struct \{([^}]*)\} (\w+);", text):
            fields = []
            for line in body.split(";"):
                kind, _, names = " ".join(line.split()).rpartition(" ") if "," not in line else ("", "", "")
                if "," in line:
                    head, *rest = " ".join(line.split()).split(", ")
                    kind, _, first = head.rpartition(" ")
                    fields += [f"{kind} {one}" for one in (first, *rest)]
                elif names:
                    fields.append(f"{kind} {names}")
            found[name] = fields
    return found


def in_c(arguments: str) -> list[str]:
    """Return arguments or fields of the table as C would declare them."""
    found = []
    for one in parse(arguments):
        const = "" if one.written else "const "
        if one.length is None:
            found.append(f"{const}{one.kind} *{one.name}" if one.kind in STRUCTS else f"{KINDS[one.kind]} {one.name}")
        else:
            found.append(f"{const}{KINDS[one.kind]} *{one.name}")
    return found


def differences(table: dict[str, str], sources: dict[str, str]) -> list[str]:
    """Return where the table of functions says something else than the sources, one line for each function."""
    found = [
        f"{name}: only in {'the table' if name in table else 'C'}" for name in sorted(table.keys() ^ sources.keys())
    ]
    for name in sorted(table.keys() & sources.keys()):
        result, _, arguments = table[name].partition(": ")
        said = f"{result}: " + ", ".join(in_c(arguments))
        if said != sources[name]:
            found.append(f"{name}: {said} is not {sources[name]}")
    return found


@pytest.fixture(scope="module")
def texts() -> list[str]:
    found = [read(path) for path in sorted(SOURCES.glob("*.c"))]
    if not found:
        pytest.skip("only the package is installed, without the C sources")
    return found


def test_functions_are_those_of_the_sources(texts):
    assert not differences(SIGNATURES, declared(texts))


def test_nothing_else_is_exported(texts):
    joined = "\n".join(texts)
    assert set(re.findall(r"\bAPI const char \*(\w+)\(void\)", joined)) == TEXTS
    numbers = re.findall(r"\bAPI const int64_t ([^;]*);", joined)
    assert {name.split(" = ")[0] for one in numbers for name in one.split(", ")} == set(CONSTANTS)
    assert len(re.findall(r"\bAPI\b", joined)) == len(SIGNATURES) + len(TEXTS) + len(numbers)


@pytest.mark.parametrize("name", STRUCTS)
def test_structs_are_those_of_the_sources(name, texts):
    assert in_c(STRUCTS[name]) == structs(texts)[name]


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        ("assign", ("n, d,", "d, n,")),  # two numbers change places
        ("lower_odds", ("agree i4[M], most", "most, agree i4[M]")),
        ("sum_rows", ("data f8", "data f4")),
        ("find_parts", (">first", "first")),
        ("join_tracks", ("i8: ", "int: ")),
        ("order_by", (", >order i8[n]", "")),
    ],
)
def test_a_signature_that_differs_is_found(name, damage, texts):
    damaged = SIGNATURES | {name: SIGNATURES[name].replace(*damage)}
    assert damaged[name] != SIGNATURES[name]
    assert [line.split(":")[0] for line in differences(damaged, declared(texts))] == [name]


def test_a_function_that_only_one_of_them_has_is_found(texts):
    sources = declared(texts)
    assert differences(SIGNATURES, sources | {"new": "int: int64_t n"}) == ["new: only in C"]
    assert differences(SIGNATURES | {"new": "int: n"}, sources) == ["new: only in the table"]


def test_a_field_that_differs_is_found(texts):
    for name, fields in STRUCTS.items():
        first, second, rest = fields.split(", ", 2)
        assert in_c(f"{second}, {first}, {rest}") != structs(texts)[name]


def test_a_function_made_by_a_macro_is_found(texts):
    assert "const float *U" in declared(texts)["nearest_f32"]
    assert "const double *U" in declared(texts)["nearest_f64"]
