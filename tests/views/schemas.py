"""The schemas of the paper, and queries over them, for tests of view trees."""

from __future__ import annotations

from dlog.m3.syntax import ast
from dlog.views.query import Aggregate, Atom, Query, Term, count, total

HOUSING = {
    "HOUSE": ("postcode", *(f"h{i}" for i in range(2, 12))),
    "SHOP": ("postcode", *(f"s{i}" for i in range(2, 7))),
    "INSTITUTION": ("postcode", "i2", "i3"),
    "RESTAURANT": ("postcode", "r2", "r3"),
    "DEMOGRAPHICS": ("postcode", "d2", "d3", "d4", "d5"),
    "TRANSPORT": ("postcode", "t2", "t3", "t4"),
}
RETAILER = {
    "INVENTORY": ("locn", "dateid", "ksn", "inventoryunits"),
    "LOCATION": ("locn", "zip", "rgn_cd", "clim_zn_nbr", "tot_area_sq_ft", "sell_area_sq_ft", "avghhi"),
    "CENSUS": ("zip", "population", "white", "asian", "pacific", "black", "medianage", "houses"),
    "ITEM": ("ksn", "subcategory", "category", "categorycluster", "prize"),
    "WEATHER": ("locn", "dateid", "rain", "snow", "maxtemp", "mintemp", "meanwind", "thunder"),
}
RUNNING = {"R": ("A", "B", "F"), "S": ("A", "C", "E"), "T": ("C", "D")}


def schema(relations, type_="int", tables=()):
    """One source and one atom for each relation; `type_` is a name, or one for each column."""
    sources, atoms = [], []
    for name, columns in relations.items():
        types = {c: type_ if isinstance(type_, str) else type_.get(c, "int") for c in columns}
        kind = ast.TABLE if name in tables else ast.STREAM
        sources.append(ast.Source(kind, name, tuple(ast.Column(c, ast.TypeRef(types[c])) for c in columns)))
        atoms.append(Atom(name, tuple(columns)))
    return {"sources": tuple(sources), "atoms": tuple(atoms)}


def var(name):
    return ast.Variable(name)


def lifting(name, *arguments):
    """`[f_a: Ring](A)`"""
    return ast.Call(name, ast.TypeRef("Ring"), tuple(map(var, arguments)))


def running_example():
    """Listing 4.1: UPDATE_R.sql."""
    factors = (lifting("f_A", "A"), lifting("f_B", "B"), lifting("f_F", "F"), lifting("f_D", "D"))
    return Query(
        **schema(RUNNING, {"B": "double", "F": "double"}, tables=("S", "T")),
        aggregates=(Aggregate("Q", (Term(factors),)),),
        types=(ast.TypeDefinition("Ring", "ring.hpp"),),
    )


def housing(*aggregates, free=(), tables=()):
    return Query(**schema(HOUSING, tables=tables), aggregates=aggregates or (sum_postcode(),), free=free)


def retailer(*aggregates, free=()):
    return Query(
        **schema(RETAILER), aggregates=aggregates or (total("units", var("inventoryunits")),), free=free
    )


def sum_postcode():
    return total("total", var("postcode"))


__all__ = ["count", "housing", "retailer", "running_example", "schema", "sum_postcode", "total", "var"]
