"""Many small statements in one transaction: the last word on each row counts, whatever way it goes."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import dlog

PROGRAM = """
edge(x, y) -> int(x), int(y).
price[x] = y -> int(x), int(y).
two(x, z) <- edge(x, y), edge(y, z).
"""

pairs = st.tuples(st.integers(0, 3), st.integers(0, 3))
statements = st.lists(
    st.tuples(st.sampled_from(["insert", "erase", "upsert"]), st.lists(pairs, min_size=1, max_size=2)),
    min_size=5,
    max_size=14,
)


def apply_to(edges, prices, what, rows):
    """The model: `edge` is a set, `price` a dict; upserts are for prices only."""
    for row in rows:
        if what == "upsert":
            prices[row[0]] = row[1]
        elif what == "insert":
            edges.add(row)
        else:
            edges.discard(row)
            if prices.get(row[0]) == row[1]:
                del prices[row[0]]


@given(st.sets(pairs), st.dictionaries(st.integers(0, 3), st.integers(0, 3)), statements, st.booleans())
def test_oracle_many_statements(edges, prices, said, large):
    db = dlog.Database(source=PROGRAM)
    with db.transaction() as tx:
        tx.insert("edge", sorted(edges))
        tx.insert("price", sorted(prices.items()))
    extra = [(i, i) for i in range(10, 3000)] if large else []
    with db.transaction() as tx:
        for what, rows in said:
            if what == "upsert":
                tx.upsert("price", rows)
            else:
                getattr(tx, what)("edge", rows)
                if what == "erase":
                    tx.erase("price", rows)
            apply_to(edges, prices, what, rows)
        for at in range(0, len(extra), 500):
            tx.insert("edge", np.array(extra[at : at + 500], np.int64))
        coming = tx.pending("edge"), tx.pending("price")
    edges |= set(extra)
    assert db["edge"].rows() == sorted(edges)
    assert db["price"].rows() == sorted(prices.items())
    for change in coming:
        reported = tx.commit_info.changes.get(change.predicate)
        assert change.inserted.rows() == (reported.inserted.rows() if reported else [])
        assert change.erased.rows() == (reported.erased.rows() if reported else [])
    db.check()
    db.verify()


def test_pending_of_a_predicate_that_is_new():
    db = dlog.Database(source="a(1).")
    with db.transaction() as tx:
        tx.execute("b(2). b(3). -a(1).")
        assert tx.pending("b").inserted.rows() == [(2,), (3,)]
        assert tx.pending("a").erased.rows() == [(1,)]
        tx.rollback()
    assert db["a"].rows() == [(1,)]


def test_an_upsert_replaces_all_values_that_its_key_has_inside_a_transaction():
    db = dlog.Database(source=PROGRAM)
    db.apply(insert={"price": [(1, 5), (2, 5)]})
    with db.transaction() as tx:
        tx.insert("price", [(1, 6), (3, 5)])
        tx.upsert("price", [(1, 7), (4, 5)])
    assert db["price"].rows() == [(1, 7), (2, 5), (3, 5), (4, 5)]
