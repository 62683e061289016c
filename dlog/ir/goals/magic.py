"""Owns goal-directed evaluation: a program -> the program that computes only what its goals need.

    # reach(x, y) <- edge(x, y).   reach(x, z) <- reach(x, y), edge(y, z).   ?- reach(1, y).      becomes
    # reach'bf'wanted(1).
    # reach'bf(x, y) <- reach'bf'wanted(x), edge(x, y).
    # reach'bf(x, z) <- reach'bf(x, y), edge(y, z).
    # query'1(y) <- reach'bf(1, y).

Correct output: every goal has the rows that the program itself gives it.  That holds because a restricted
predicate has only rows of the predicate, and all of those that its demand asks for, and because the new
program is stratified: where demand would close a cycle through a negation or an aggregate, the predicate
behind it is computed in full instead.

Magic sets with the adornments of Bancilhon, Maier, Sagiv and Ullman; goals with fewer bound columns serve
those with more.  Knows nothing of how programs run.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace

import rustworkx

from dlog.errors import Diagnostics
from dlog.ir.analysis.safety import make_safe
from dlog.ir.analysis.stratify import stratify
from dlog.ir.goals.goals import Restriction, asked_for, restrictable, switches
from dlog.ir.goals.linear import follow_calls
from dlog.ir.goals.passing import Demand, Passing
from dlog.ir.lower.aggregates import used_by
from dlog.ir.lower.quantify import quantify, with_heads
from dlog.ir.rules import Atom, Conj, Predicate, Program, Rule, Var

_MOST = 3  # restrictions of one predicate before it is computed in full


@dataclass(frozen=True)
class Rewriting:
    """A program for its goals, and what was decided.  Names are the predicates of the program rewritten."""

    program: Program
    restricted: Mapping[str, tuple[str, ...]]  # to the predicates that hold the requested part of each
    full: Mapping[str, str]  # derived predicates that are computed in full, with why
    left_out: tuple[str, ...]  # derived predicates that nothing asks for


def goal_directed(
    program: Program, based: Collection[str] | None = None, goals: Mapping[str, str] | None = None
) -> Rewriting:
    """`based` are the predicates that may hold base facts, by default those that the program gives some.
    `goals` are predicates requested in full, with why; by default all that the program asks for.

    O(rules^2) in the worst case, and usually a few passes over them.
    """
    based = frozenset(base_predicates(program) if based is None else based)
    why = "subsumption compares all rows of a predicate" if program.subsumptions else ""
    if any(predicate.numbering is not None for predicate in program.predicates.values()):
        why = "autoinc() numbers rule after rule"
    if why:
        return Rewriting(program, {}, {name: why for s in program.strata for name in s.predicates}, ())
    goals = asked_for(program, based) if goals is None else goals
    maker = _Maker(program, based, dict(goals))
    return maker.run()


def base_predicates(program: Program) -> Iterator[str]:
    """Predicates for which a program itself has or reads base facts."""
    yield from (block.predicate for block in program.facts)
    yield from (delta.predicate for delta in program.deltas)
    yield from (d.predicate for d in program.directives if d.kind == "input")


@dataclass
class RestrictedPart:
    """The rules of one restricted predicate: heads and bodies beside their guards, and what they demand."""

    name: str
    origin: str
    restriction: Restriction
    guard_name: str
    rules: list[tuple[Rule, Atom, Atom, Conj]] = field(default_factory=list)  # rule, head, guard, body
    demands: list[tuple[Rule, Demand]] = field(default_factory=list)

    @property
    def bound(self) -> list[int]:
        return sorted(self.restriction)


class _Maker:
    """Determines what is restricted how, by repetition, then makes the rules."""

    def __init__(self, program: Program, based: frozenset[str], goals: dict[str, str]):
        self.program = program
        self.based = based
        self.full = goals
        self.goals = frozenset(goals)
        self.switches = switches(program)
        self.derived = {name for stratum in program.strata for name in stratum.predicates}
        self.recursive = {
            name: frozenset(s.predicates) if s.recursive else frozenset[str]()
            for s in program.strata
            for name in s.predicates
        }
        self.columns = {name: restrictable(program, name) for name in self.derived}
        self.restrictions: dict[str, set[Restriction]] = defaultdict(set)
        for name in self.derived & (
            self.switches.never | self.based & _combined(program) | _totalled(program)
        ):
            self.columns[name] = frozenset()

    def run(self) -> Rewriting:
        """A predicate that demand cannot reach is computed in full, and everything is repeated: at most once
        per predicate.
        """
        while True:
            program, parts = self.settled()
            culprits = _culprits(program, self.program, self.origins())
            if not culprits:
                diagnostics = Diagnostics()
                rules, constraints = list(program.rules), self.program.constraint_rules
                strata = stratify(program.predicates, rules, diagnostics, constraints)
                if not diagnostics.errors:
                    return self.result(replace(program, strata=strata), parts)
                culprits = set(self.origins().values())  # a value of a recursive min or max was passed on
            assert culprits, "a program without demand is stratified"
            for name in culprits:
                self.full.setdefault(name, "demand for it would go through a negation or an aggregate")
            self.restrictions.clear()

    def settled(self) -> tuple[Program, list[RestrictedPart]]:
        """Repeats until no use of a predicate asks for more than the last time."""
        while True:
            before = (len(self.full), {name: set(r) for name, r in self.restrictions.items()})
            plain, parts = self.walk()
            if len(self.full) > before[0]:
                self.restrictions.clear()
            elif before[1] == {name: set(r) for name, r in self.restrictions.items()}:
                return self.assemble(plain, parts), parts

    def origins(self) -> dict[str, str]:
        """The predicate behind every name made here."""
        return {
            made: name
            for name, restrictions in self.restrictions.items()
            for r in restrictions
            for made in (self.rename(name, r), self.wanted(name, r))
        }

    # Which columns

    def restricted(self, name: str) -> bool:
        return name in self.derived and name not in self.full

    def choose(self, name: str, bound: Restriction) -> Restriction | None:
        """The restriction that serves a use with these columns bound: the most general one available."""
        known = self.restrictions[name]
        bound &= self.columns[name]
        serving = sorted((r for r in known if r <= bound), key=lambda r: (len(r), sorted(r)))
        if serving:
            return serving[0]
        if not bound or self.switches.off or len(known) == _MOST:
            self.full.setdefault(name, "all of it is needed")
            return None
        known.add(bound)
        return bound

    def rename(self, name: str, restriction: Restriction) -> str:
        arity = self.program.predicates[name].arity
        return f"{name}'{''.join('b' if i in restriction else 'f' for i in range(arity))}"

    def wanted(self, name: str, restriction: Restriction) -> str:
        return f"{self.rename(name, restriction)}'wanted"

    # Rules

    def walk(self) -> tuple[list[tuple[Rule, list[Demand]]], list[RestrictedPart]]:
        """Rules of what is computed in full, and the parts of what is not, from the goals downwards."""
        plain: dict[int, tuple[Rule, list[Demand]]] = {}
        parts: dict[str, RestrictedPart] = {}
        waiting: list[tuple[str, Restriction | None]] = [(name, None) for name in self.full]
        seen = set(waiting)
        for name, restriction in waiting:
            if restriction is None:
                found = [self.plain_rule(r, plain) for r in self.program.rules_of(name) if r.id not in plain]
                demands = [demand for rule in found for demand in rule]
                bodies = [plain[r.id][0].body for r in self.program.rules_of(name)]
            else:
                part = parts[self.rename(name, restriction)] = self.part(name, restriction)
                demands = [demand for _, demand in part.demands]
                bodies = [body for *_, body in part.rules]
            uses: list[tuple[str, Restriction | None]] = [(d.predicate, d.restriction) for d in demands]
            uses += [(a.predicate, None) for b in bodies for a, _ in b.atoms() if a.predicate in self.derived]
            waiting += [use for use in dict.fromkeys(uses) if use not in seen]
            seen |= set(uses)
        return [plain[i] for i in sorted(plain)], list(parts.values())

    def plain_rule(self, rule: Rule, plain: dict[int, tuple[Rule, list[Demand]]]) -> list[Demand]:
        passing = self.passing(rule, frozenset())
        body = passing.run(None)
        plain[rule.id] = (replace(rule, body=body), passing.demands)
        return passing.demands

    def part(self, name: str, restriction: Restriction) -> RestrictedPart:
        part = RestrictedPart(
            self.rename(name, restriction), name, restriction, self.wanted(name, restriction)
        )
        for rule in self.program.rules_of(name):
            for head in rule.heads:
                if head.predicate == name:
                    self.restricted_rule(rule, head, part)
        return part

    def restricted_rule(self, rule: Rule, head: Atom, part: RestrictedPart) -> None:
        single = with_heads(rule, (head,), used_by((head,), rule.aggregates))
        args = tuple(head.args[i] for i in part.bound)
        guard = Atom(part.guard_name, args, len(args))
        passing = self.passing(single, self.recursive[part.origin])
        body = passing.run(guard)
        part.rules.append((single, replace(head, predicate=part.name), guard, body))
        part.demands += [(single, demand) for demand in passing.demands]

    def passing(self, rule: Rule, recursive: frozenset[str]) -> Passing:
        return Passing(
            rule,
            self.program.predicates,
            recursive,
            self.restricted,
            self.switches.eager,
            self.choose,
            self.rename,
        )

    # The new program

    def assemble(self, plain: list[tuple[Rule, list[Demand]]], parts: list[RestrictedPart]) -> Program:
        """The program without its strata: there may be none."""
        predicates = dict(self.program.predicates)
        outside = [(rule, demand) for rule, demands in plain for demand in demands]
        for part in parts:
            self.declare(part, predicates)
        rules = follow_calls(parts, outside, predicates)
        for rule, demand in (*outside, *(item for part in parts for item in part.demands)):
            rules += self.demand_rule(rule, demand)
        for part in parts:
            rules += self.part_rules(part)
        for rule, _ in plain:
            heads = tuple(h for h in rule.heads if h.predicate in self.full)
            rules.append(quantify(with_heads(rule, heads, used_by(heads, rule.aggregates))))
        numbered = [replace(rule, id=number) for number, rule in enumerate(_distinct(rules))]
        return replace(self.program, predicates=predicates, rules=tuple(numbered), strata=())

    def declare(self, part: RestrictedPart, predicates: dict[str, Predicate]) -> None:
        old = self.program.predicates[part.origin]
        columns = tuple(old.columns[i] for i in part.bound)
        predicates[part.guard_name] = Predicate(part.guard_name, columns, len(columns), auxiliary=True)
        predicates[part.name] = replace(old, name=part.name, auxiliary=True)
        if part.origin in self.based:
            part.rules.append(_base_rule(part, old))

    def demand_rule(self, rule: Rule, demand: Demand) -> Iterator[Rule]:
        name = self.wanted(demand.predicate, demand.restriction)
        head = Atom(name, demand.args, len(demand.args))
        if head not in demand.forms:
            made = Rule(rule.id, (head,), Conj((), demand.forms), types=rule.types, span=rule.span)
            diagnostics = Diagnostics()
            safe = make_safe(made, diagnostics)
            assert not diagnostics.errors, f"{made}: {diagnostics.errors[0]}"
            yield safe

    def part_rules(self, part: RestrictedPart) -> Iterator[Rule]:
        for rule, head, guard, body in part.rules:
            forms = body.forms if _implied(part, head, body) else (*body.forms, guard)
            if not rule.aggregates and forms is not body.forms:
                forms = (guard, *body.forms)
            yield quantify(replace(rule, heads=(head,), body=replace(body, forms=forms)))

    def result(self, program: Program, parts: list[RestrictedPart]) -> Rewriting:
        restricted: dict[str, list[str]] = defaultdict(list)
        for part in parts:
            restricted[part.origin].append(part.name)
        held = {name for stratum in program.strata for name in stratum.predicates}
        full = {name: why for name, why in self.full.items() if name in self.derived}
        left_out = tuple(n for n in self.program.predicates if n in self.derived - held - set(restricted))
        return Rewriting(program, {n: tuple(p) for n, p in restricted.items()}, full, left_out)


def _base_rule(part: RestrictedPart, predicate: Predicate) -> tuple[Rule, Atom, Atom, Conj]:
    """The requested base facts: the predicate itself holds nothing else, as its rules were removed."""
    args = tuple(Var(f"x{i}") for i in range(predicate.arity))
    types = {a.name: c.type for a, c in zip(args, predicate.columns, strict=True)}
    guard = Atom(part.guard_name, tuple(args[i] for i in part.bound), len(part.bound))
    body = Conj((), (Atom(part.origin, args, predicate.n_keys),))
    head = Atom(part.name, args, predicate.n_keys)
    return Rule(0, (head,), body, types=types), head, guard, body


def _implied(part: RestrictedPart, head: Atom, body: Conj) -> bool:
    """Whether the guard adds nothing: the body has a row of the same predicate for the same demand."""
    return part.guard_name.endswith("'wanted") and any(
        isinstance(f, Atom)
        and f.predicate == part.name
        and all(f.args[i] == head.args[i] for i in part.bound)
        for f in body.forms
    )


def _distinct(rules: list[Rule]) -> list[Rule]:
    """Two uses may request the same; the first is enough."""
    return list({(rule.heads, rule.body, rule.aggregates): rule for rule in reversed(rules)}.values())[::-1]


def _combined(program: Program) -> set[str]:
    return {name for stratum in program.strata for name in stratum.combine}


def _totalled(program: Program) -> set[str]:
    """A restriction would make a recursive sum depend on the demand for it."""
    return {name for stratum in program.strata if stratum.totals for name in stratum.predicates}


# Cycles that the original program does not have


def _culprits(new: Program, old: Program, origins: Mapping[str, str]) -> set[str]:
    """Predicates whose restriction closes a cycle through a negation or an aggregate."""
    component = _components(new)
    members: dict[int, set[str]] = defaultdict(set)
    for name, number in component.items():
        members[number] |= {origins[name]} if name in origins else set()
    culprits = set()
    for head, atom in _delicate(new):
        if component[head.predicate] == component[atom.predicate]:
            ends = {origins.get(a.predicate, a.predicate) for a in (head, atom)}
            if not any(ends <= set(s.predicates) and ends & {*s.combine, *s.totals} for s in old.strata):
                restricted = members[component[head.predicate]]
                culprits |= ends & restricted or restricted
    return culprits


def _delicate(program: Program) -> Iterator[tuple[Atom, Atom]]:
    """Every head and what it needs all of: under a negation or an aggregate."""
    for rule in program.rules:
        for head in rule.heads:
            aggregated = bool(used_by((head,), rule.aggregates))
            yield from ((head, atom) for atom, negated in rule.body.atoms() if negated or aggregated)


def _components(program: Program) -> dict[str, int]:
    graph = rustworkx.PyDiGraph(multigraph=False)
    ids = {name: graph.add_node(name) for name in program.predicates}
    for rule in program.rules:
        for head in rule.heads:
            for atom, _ in rule.body.atoms():
                graph.add_edge(ids[atom.predicate], ids[head.predicate], None)
    components = rustworkx.strongly_connected_components(graph)
    return {graph[node]: number for number, nodes in enumerate(components) for node in nodes}
