"""Universities for `ontology.dl`. The schema is LUBM's in miniature."""

from collections import Counter

from common import Example, closure

SUBCLASS = [
    ("Person", "Thing"), ("Employee", "Person"), ("Faculty", "Employee"), ("Professor", "Faculty"),
    ("FullProfessor", "Professor"), ("AssociateProfessor", "Professor"), ("Lecturer", "Faculty"),
    ("Chair", "Professor"), ("Student", "Person"), ("Graduate", "Student"), ("Undergraduate", "Student"),
    ("Organization", "Thing"), ("University", "Organization"), ("Department", "Organization"),
    ("ResearchGroup", "Organization"), ("Course", "Work"), ("GraduateCourse", "Course"), ("Work", "Thing"),
]  # fmt: skip
SUBPROPERTY = [
    ("heads", "works_for"), ("works_for", "member_of"), ("studies_at", "member_of"),
    ("doctoral_degree_from", "degree_from"), ("masters_degree_from", "degree_from"),
]  # fmt: skip
DOMAIN = [("teaches", "Faculty"), ("advised_by", "Person"), ("takes", "Student"), ("heads", "Chair"),
          ("works_for", "Employee"), ("part_of", "Organization")]  # fmt: skip
RANGE = [("degree_from", "University"), ("takes", "Course"), ("advised_by", "Professor"),
         ("member_of", "Organization"), ("part_of", "Organization")]  # fmt: skip
INVERSE = [("degree_from", "has_alumnus"), ("member_of", "has_member")]
TRANSITIVE = ["part_of"]


def main() -> None:
    example = Example("ontology")
    triples, instances = universities(example)
    example.facts("triple", triples)
    example.facts("instance", instances)
    example.facts("subclass", SUBCLASS)
    example.facts("subproperty", SUBPROPERTY)
    example.facts("domain", DOMAIN)
    example.facts("range_of", RANGE)
    example.facts("inverse", INVERSE)
    example.facts("transitive", [(p,) for p in TRANSITIVE])
    is_a = closure(SUBCLASS)
    holds = complete(triples)
    types = type_individuals(holds, instances, is_a)
    example.expected("is_a", is_a)
    example.expected_stdout(f"holds\t{len(holds)}\ntype_of\t{len(types)}\n")
    answer(example, holds, types)


def universities(example: Example) -> tuple[set, set]:
    rng = example.random
    triples, instances = set(), set()
    names = [f"U{i}" for i in range(4)]
    instances |= {(u, "University") for u in names[:2]}  # what the others are follows from degrees
    for u in names:
        for j in range(3):
            d = f"{u}.D{j}"
            instances.add((d, "Department"))
            triples.add((d, "part_of", u))
            for g in range(2):
                triples.add((f"{d}.G{g}", "part_of", d))
            staff = [f"{d}.F{i}" for i in range(6)]
            courses = [f"{d}.C{i}" for i in range(8)]
            for i, person in enumerate(staff):
                instances.add((person, rng.choice(("FullProfessor", "AssociateProfessor", "Lecturer"))))
                triples.add((person, "heads" if i == 0 else "works_for", d))
                triples.add((person, "doctoral_degree_from", rng.choice(names)))
                triples |= {(person, "teaches", c) for c in rng.sample(courses, 2)}
            for i in range(14):
                person = f"{d}.S{i}"
                if i % 3:
                    instances.add((person, "Undergraduate"))
                else:
                    instances.add((person, "Graduate"))
                    triples.add((person, "masters_degree_from", rng.choice(names)))
                triples.add((person, "studies_at", d if i % 4 else u))
                triples.add((person, "advised_by", rng.choice(staff)))
                triples |= {(person, "takes", c) for c in rng.sample(courses, 3)}
    triples |= {("visitor", "knows", "U0.D0.F0"), ("visitor", "knows", "U1.D1.F1")}
    return triples, instances


def complete(triples: set) -> set:
    """Applies every rule of the schema to each triple as it is found."""
    above = closure(SUBPROPERTY)
    inverse = {*INVERSE, *((q, p) for p, q in INVERSE)}
    holds, work = set(triples), list(triples)
    while work:
        s, p, o = work.pop()
        more = {(s, q, o) for r, q in above if r == p} | {(o, q, s) for r, q in inverse if r == p}
        if p in TRANSITIVE:
            more |= {(s, p, u) for t, q, u in holds if t == o and q == p}
            more |= {(t, p, o) for t, q, u in holds if u == s and q == p}
        work += more - holds
        holds |= more
    return holds


def type_individuals(holds: set, instances: set, is_a: set) -> set:
    types = set(instances)
    types |= {(s, c) for s, p, _ in holds for q, c in DOMAIN if p == q}
    types |= {(o, c) for _, p, o in holds for q, c in RANGE if p == q}
    return types | {(x, d) for x, c in types for b, d in is_a if b == c}


def answer(example: Example, holds: set, types: set) -> None:
    of: dict[str, set] = {}
    for s, p, o in holds:
        of.setdefault(p, set()).add((s, o))
    alumni = {(x, u) for u, x in of["has_alumnus"] if (u, "University") in types}
    home_grown = {(x, u) for x, u in alumni for y, d in of["works_for"] if x == y and (d, u) in of["part_of"]}
    student_of = {
        (s, prof, course)
        for s, prof in of["advised_by"]
        for t, course in of["takes"]
        if s == t and (prof, course) in of["teaches"] and (s, "Student") in types
    }
    members = Counter(u for x, u in of["member_of"] if (u, "University") in types and (x, "Person") in types)
    typed = {x for x, _ in types}
    example.expected("student_of", student_of)
    example.expected("chair", {(x, d) for x, d in of["heads"] if (d, "Department") in types})
    example.expected("alumnus", alumni)
    example.expected("home_grown", home_grown)
    example.expected("members", members.items())
    example.expected("population", Counter(c for _, c in types).items())
    example.expected("untyped", {(s,) for s, _, _ in holds if s not in typed})


if __name__ == "__main__":
    main()
