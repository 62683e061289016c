"""Expected outputs, worked out by hand, of the programs in `souffle/` about scopes and components."""

from common import Example


def main() -> None:
    witnesses()
    inlined_conditions()
    components()
    concatenation()


def souffle(name: str) -> Example:
    return Example(f"souffle/{name}")


def witnesses() -> None:
    example = souffle("witnesses")
    example.expected("longest", [("FRA", "NRT", 9300), ("NRT", "FRA", 9300)])
    best = [("VIE", "JFK", 6800), ("GRZ", "VIE", 150), ("JFK", "FRA", 6200)]
    example.expected("longest_from", [*best, ("FRA", "NRT", 9300), ("NRT", "FRA", 9300)])
    example.expected("shortest", [(150,)])
    example.expected("shortest_pair", [(150 + 6800,)])  # Graz to Vienna to New York
    example.expected("hub", [("VIE", 2), ("FRA", 2)])
    example.expected("leaves", [("AT", "VIE"), ("DE", "FRA"), ("US", "JFK"), ("JP", "NRT")])


def inlined_conditions() -> None:
    example = souffle("inlined_conditions")
    example.expected("order", [("d", "a"), ("d", "b"), ("d", "c"), ("a", "b"), ("a", "c")])
    example.expected("far", [("a", "b"), ("b", "c"), ("b", "d")])
    example.expected("leftmost", [("d",)])
    example.expected("first", [("d",)])
    # b and each other one, both ways, and d and c; all but d have another point to their left.
    example.expected("counted", [(7, 3)])


def components() -> None:
    example = souffle("components")
    example.expected("roads.path", [("a", "b"), ("a", "c"), ("b", "c"), ("b", "b"), ("c", "b"), ("c", "c")])
    example.expected("roads.cyclic", [("b",), ("c",)])
    example.expected("ports.path", [(1, 2), (2, 1)])  # the one short edge, both ways
    example.expected("ports.long.path", [(2, 3), (3, 4), (2, 4)])
    example.expected("ports.unnamed", [(2,), (4,)])
    example.expected("ports.both.pair", [(1, 2)])
    example.expected("twice.both", [(1,), (2,)])


def concatenation() -> None:
    example = souffle("concatenation")
    example.expected("label", [("bolt-5",), ("nut-13",)])
    example.expected("pair", [("boltbolt",), ("boltnut",), ("nutbolt",)])


if __name__ == "__main__":
    main()
