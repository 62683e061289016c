"""Data of the small programs with choice domains and autoinc(), by the order that docs/language.md states."""

from common import Example


def main() -> None:
    spanning_tree()
    matching()
    ranking()


def spanning_tree() -> None:
    example = Example("spanning_tree")
    towns = ["Aarau", "Baden", "Chur", "Davos", "Emmen", "Flims", "Genf", "Horw", "Ilanz", "Jona", "Kloten"]
    roads = {(x, y) for x in towns[:8] for y in example.random.sample(towns[:9], 3) if x != y}
    roads |= {("Jona", "Kloten"), ("Kloten", "Aarau")}
    example.facts("road", sorted(roads))
    tree, entered, round = {("", "Aarau")}, {"Aarau": 0}, {"Aarau"}
    while round:
        added = set()
        for x, y in sorted((x, y) for x, y in roads if x in round):
            if y not in entered:
                tree.add((x, y))
                added.add(y)
                entered[y] = entered[x] + 1
        round = added
    example.expected("tree", tree)
    example.expected("roads_from_first", entered.items())
    example.expected("cut_off", {(x,) for x, _ in roads if x not in entered})


def matching() -> None:
    example = Example("matching")
    people = ["Ada", "Ben", "Cleo", "Dan", "Eve", "Finn", "Hans"]
    tasks = ["bake", "cook", "drive", "paint", "row", "sing", "weld"]
    can = {(p, t) for p in people for t in example.random.sample(tasks, 2)} | {("Gus", "cook")}
    example.facts("can", sorted(can))
    does: dict[str, str] = {}
    for person, task in sorted(can):
        if person not in does and task not in does.values():
            does[person] = task
    example.expected("does", does.items())
    example.expected("free", {(p,) for p, _ in can if p not in does})
    example.expected("open", {(t,) for _, t in can if t not in does.values()})


def ranking() -> None:
    example = Example("ranking")
    runners = ["Abel", "Bikila", "Coe", "Davies", "Ennis", "Farah", "Gebre", "Herb"]
    times = [(example.random.randrange(2400, 2430), r, example.random.choice("XYZ")) for r in runners]
    times += [(2400, "Zola", "X"), (2400, "Ivan", "W")]
    example.facts("finish", times)
    places = [(n + 1, r, club) for n, (_, r, club) in enumerate(sorted(times))]
    example.expected("place", {(n, r) for n, r, _ in places})
    firsts = {club: (n, club, r) for n, r, club in reversed(places)}
    example.expected("club_first", firsts.values())


if __name__ == "__main__":
    main()
