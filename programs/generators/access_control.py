"""A policy for `access_control.dl`: a tree of folders, roles that inherit, few denials."""

from collections import Counter

from common import Example, closure

ROLES = {
    "guest": [],
    "staff": ["guest"],
    "engineer": ["staff"],
    "analyst": ["staff"],
    "lead": ["engineer"],
    "auditor": ["analyst"],
    "operator": ["engineer", "analyst"],
    "contractor": ["guest"],
    "trainee": ["guest"],
    "archivist": ["staff"],
    "admin": ["lead", "operator", "auditor"],
}
ACTIONS = ["read", "write", "share", "delete"]


def main() -> None:
    example = Example("access_control")
    rng = example.random
    folders = ["/"]
    parent = {}
    for i in range(1, 60):
        parent[f"/f{i:02}"] = folders[rng.randrange(max(0, i // 3), i)]
        folders.append(f"/f{i:02}")
    users = [f"user{i:02}" for i in range(40)]
    # The last users are in no role at all, and so are locked out.
    member = {(u, r) for u in users[:-3] for r in rng.sample(list(ROLES), rng.choice((1, 1, 2)))}
    grant = {(rng.choice(list(ROLES)), rng.choice(ACTIONS), rng.choice(folders[1:])) for _ in range(45)}
    grant |= {("guest", "read", "/f01"), ("staff", "read", "/f02"), ("staff", "write", "/f03")}
    deny = {(rng.choice(list(ROLES)), rng.choice(ACTIONS), rng.choice(folders[1:])) for _ in range(25)}
    deny |= {("contractor", "read", "/f01"), ("trainee", "delete", "/")}
    extends = {(r, s) for r, above in ROLES.items() for s in above}

    example.facts("user", [(u,) for u in users])
    example.facts("role", [(r,) for r in ROLES])
    example.facts("member", member)
    example.facts("extends", extends)
    example.facts("folder", [(f,) for f in folders])
    example.facts("parent", parent.items())
    example.facts("grant", grant)
    example.facts("deny", deny)

    inherits = closure(extends) | {(r, r) for r in ROLES}
    within = closure(parent.items()) | {(f, f) for f in folders}
    has_role = {(u, s) for u, r in member for t, s in inherits if r == t}

    def reach(policy: set) -> set:
        return {(u, a, f) for u, r in has_role for s, a, g in policy if r == s for f, h in within if g == h}

    granted, denied = reach(grant), reach(deny)
    allowed = granted - denied
    useless = {
        (r, a, f)
        for r, a, f in deny
        if not any((u, r) in has_role and b == a and (g, f) in within for u, b, g in granted)
    }
    example.expected("allowed", allowed)
    example.expected("locked_out", {(u,) for u in users} - {(u,) for u, _, _ in allowed})
    example.expected("useless_denial", useless)
    without = {(u, f) for u, a, f in allowed if a == "write" and (u, "read", f) not in allowed}
    example.expected("write_without_read", without)
    example.expected("permissions", Counter(u for u, _, _ in allowed).items())


if __name__ == "__main__":
    main()
