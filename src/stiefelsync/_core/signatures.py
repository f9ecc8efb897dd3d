"""What every compiled kernel takes and returns: the one table, which tests compare with the C sources.

A function is ``result: argument, argument, …``, the fields of a struct are written alike. An
argument is a name and its kind:

=================  ==========================================================================
``n``              a whole number (``int64_t``)
``near f8``        a real number (``double``)
``s Chain``        a struct of this table, by reference
``ends i8[2*M]``   a C-contiguous array of 64-bit integers; how many, by the other arguments
``value f8[]``     one whose length is the business of the caller
``>out f4[m]``     one that is written to; all others are only read
``X f8[m*k]?``     one that may be None
=================  ==========================================================================

Kinds of entries are NumPy's: i4, i8, u1, u4, u8, f4, f8, and b1 for truth values, which are bytes
in C. The result is int or i8, negative where there was no memory, or void.
"""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["CONSTANTS", "SIGNATURES", "STRUCTS", "Argument", "parse"]

# Sizes that C decides on and Python must know.
CONSTANTS = ("angles", "scales", "bins", "reaches")

STRUCTS = {
    "Chain": """k, m, d, offsets i8[k+1], owner i4[m], near_start i8[k+1], near_object i4[near_start[k]],
        near_pair i4[len(near_object)], near_back i4[len(near_object)], partner_start i8[k+1],
        partner i4[partner_start[k]], weight f8[len(partner)]?, worth f8[], later_start i8[k+1],
        later_object i4[later_start[k]], later_weight i4[len(later_object)], far_start i8[k+1],
        far_object i4[far_start[k]], total i4[k], held f8[], absent f8[len(held)], birth f8[k], back f8,
        >labels i8[m], >point i4[k*d], >near i4[k*d], >far u1[k*d], >size i4[d], >begun i4[d],
        >shared i8[1], most, alone, >random u8[1]""",
}

SIGNATURES = {
    # assign.c
    "assign": "int: S f8[n*d], n, d, >columns i8[n]",
    "nearest_f32": """int: U f4[offsets[k]*d], d, offsets i8[k+1], k, >labels i8[offsets[k]],
        >contested b1[k]""",
    "nearest_f64": """int: U f8[offsets[k]*d], d, offsets i8[k+1], k, >labels i8[offsets[k]],
        >contested b1[k]""",
    "assign_objects_f32": """int: U f4[offsets[-1]*d], d, offsets i8[], count, objects i8[count],
        orders i8[count*d], >labels i8[offsets[-1]]""",
    "assign_objects_f64": """int: U f8[offsets[-1]*d], d, offsets i8[], count, objects i8[count],
        orders i8[count*d], >labels i8[offsets[-1]]""",
    # chain.c
    "begin_chain": "void: >s Chain",
    "sample_labels": """int: >s Chain, sweeps, exchanges, joins, inverse f8, ends i8[2*M], M, distance f4[],
        >order i4[]""",
    "count_pairs": "void: s Chain, pairs, >counts i8[4*pairs]",
    "count_cells": "void: s Chain, >held i8[], >absent i8[len(held)], >begun i8[]",
    # constrain.c
    "join_in_order": "int: owner i8[n], n, owners, ends i8[2*E], E, >track i8[n]",
    # decide.c
    "group_samples": "void: samples, m, label i4[samples*m], >start i4[samples*(m+1)], >members i4[samples*m]",
    "count_shared": "i8: samples, m, start i4[samples*(m+1)], members i4[samples*m], answer i8[m]",
    "decide_sweep": """i8: k, m, offsets i8[k+1], samples, label i4[samples*m],
        start i4[samples*(m+1)], members i4[samples*m], price f8, >answer i8[m], most""",
    # doubts.c
    "grade_matches": """int: M, support f8[M], n, borders f8[n], speak b1[M], kept b1[M],
        >level u1[M], >counts i8[4*(n+3)]""",
    "sum_levels": """int: pairs, start i8[pairs+1], level u1[start[pairs]], value f8[],
        >sums f8[pairs]""",
    "spread_odds": """int: pairs, start i8[pairs+1], level u1[start[pairs]], value f8[],
        factor f8[pairs], kept b1[start[pairs]], >odds f8[start[pairs]]""",
    "lower_odds": "int: M, agree i4[M], most, lower f8[most+1], >odds f8[M]",
    "sum_probabilities": """int: pairs, start i8[pairs+1], odds f8[start[pairs]],
        which b1[start[pairs]], >sums f8[pairs], >counts i8[pairs]""",
    # grids.c
    "find_cells": """int: groups, start i8[groups+1], value f8[start[groups]], near f8, share f8,
        >cell f8[groups]""",
    # grow.c
    "merge_round": """int: points i8[start[n]], objects i8[start[n]], start i8[n+1], n, k,
        A i8[edges], B i8[edges], count i8[edges], weight f8[edges], edges, gain f8[edges]?,
        untested b1[n], >new_points i8[start[n]], >new_objects i8[start[n]], >new_start i8[n+1],
        >new_A i8[edges], >new_B i8[edges], >new_count i8[edges], >new_weight f8[edges],
        >done i8[start[n]], >first i8[start[n]], >lost_edge b1[]?, >left_over i8[4]""",
    # join_tracks.c
    "join_tracks": """i8: ends i8[2*M], weights f8[M], M, >track i8[m], objects i4[m], m,
        places f8[2*m]?, copy f8, rounding f8, least, rounds""",
    # nearest.c, neighbours.c
    "order_points": "int: place f4[2*offsets[k]], offsets i8[k+1], k, >turn i4[offsets[k]]",
    "neighbour_support": """int: coordinates f4[2*len(turn)], turn i4[], turns,
        ends i8[2*first[groups]], first i8[groups+1], groups, q, tolerance f8, cells f8[2*groups],
        rounded f8, tangents f4[], squares f4[], centres f8[], >support f8[first[groups]]""",
    "miss_neighbours": """int: coordinates f4[2*len(turn)], turn i4[], turns,
        ends i8[2*first[groups]], first i8[groups+1], groups, q, kept b1[first[groups]],
        >missed f8[first[groups]]""",
    # product.c
    "product_f32": """int: indptr i4[m+1], indices i4[indptr[m]], data f4[indptr[m]], m, U f4[m*c],
        c, >out f4[m*c], first, last, diagonal f4[m]?, onto f4[m*c]?, scale f8""",
    "product_f64": """int: indptr i4[m+1], indices i4[indptr[m]], data f8[indptr[m]], m, U f8[m*c],
        c, >out f8[m*c], first, last, diagonal f8[m]?, onto f8[m*c]?, scale f8""",
    # rules.c
    "count_edge_triangles": "int: A i8[edges], B i8[edges], edges, n, >support i8[edges]",
    "count_edge_squares": """int: A i8[edges], B i8[edges], edges, n, hub, objects i8[start[n]],
        start i8[n+1], >support i8[edges]""",
    "grade_support": """void: support i8[edges], count i8[edges], weight f8[edges], edges,
        >gain f8[edges]""",
    "weigh_choices": """int: A i8[edges], B i8[edges], weight f8[edges], edges, start i8[n+1], n,
        most, >gain f8[edges]""",
    "prefer_parallel": """void: A i8[edges], B i8[edges], count i8[edges], weight f8[edges], edges,
        start i8[], >gain f8[edges]""",
    # sparse.c
    "sum_rows": "void: m, indptr i4[m+1], data f8[indptr[m]], >out f8[m]",
    "scale_entries": """void: m, indptr i4[m+1], indices i4[indptr[m]], data f8[indptr[m]], s f8[m],
        >out f8[indptr[m]]?, >single f4[indptr[m]]?""",
    "sketch_f32": """int: m, width, indptr i4[m+1], indices i4[indptr[m]], data f4[indptr[m]],
        shift f4[m], column i8[m], sign f4[m], >out f4[m*width]""",
    "sketch_f64": """int: m, width, indptr i4[m+1], indices i4[indptr[m]], data f8[indptr[m]],
        shift f8[m], column i8[m], sign f8[m], >out f8[m*width]""",
    # tracks.c
    "order_by": "int: major i8[n], minor i8[n]?, n, most i8[], >order i8[n]",
    "sort_matches": """i8: ends i8[2*M], M, chosen b1[m], m, >sorted i8[2*M], >order i8[M],
        >rising b1[1]""",
    "contract_edges": """i8: tails i8[edges], heads i8[edges], given i8[edges], weighs f8[edges], edges,
        n, >A i8[edges], >B i8[edges], >count i8[edges], >weight f8[edges]""",
    "find_conflicts": """void: objects i8[start[-1]], start i8[], words u8[len(start)-1],
        A i8[pairs], B i8[pairs], pairs, >bad b1[pairs]""",
    "find_parts": "int: label i8[m], m, ends i8[2*M], M, counts b1[M]?, >first i8[m]",
    "compare_tracks": """void: ends i8[2*M], weights f8[M], M, other i8[], track i8[len(other)],
        component i8[len(other)], >gain f8[len(other)]""",
    "find_agreeing": "int: ends i8[2*M], M, labels i8[], >agree b1[M]",
    "find_broken_components": "void: component i8[m], objects i4[m], m, >last i4[m], >broken b1[m]",
    # third_objects.c
    "ask_witnesses": """int: k, m, pairs, pair i4[2*pairs], start i8[pairs+1],
        ends i8[2*start[pairs]], kept b1[start[pairs]], asked b1[start[pairs]],
        >agree i4[start[pairs]], >differ i4[start[pairs]], >silent i4[start[pairs]]""",
    "have_others": "int: M, ends i8[2*M], kept b1[M], >degree i4[], >others b1[M]",
}  # fmt: skip


class Argument(NamedTuple):
    """An argument of a kernel, or a field of a struct.

    Its length is an expression; None for numbers and structs.
    """

    name: str
    kind: str
    length: str | None
    written: bool
    optional: bool


def parse(arguments: str) -> tuple[Argument, ...]:
    """Return the arguments of a signature, without its result, or the fields of a struct.

    Examples
    --------
    >>> parse("n, >out f8[2*n]?")[1]
    Argument(name='out', kind='f8', length='2*n', written=True, optional=True)
    """
    found = []
    for text in " ".join(arguments.split()).split(", "):
        name, _, kind = text.partition(" ")
        base, bracket, length = kind.removesuffix("?").partition("[")
        found.append(
            Argument(
                name.removeprefix(">"),
                base or "i8",
                length.removesuffix("]") if bracket else None,
                name.startswith(">"),
                kind.endswith("?"),
            )
        )
    return tuple(found)
