import tracemalloc
import uuid

from hypothesis import given
from hypothesis import strategies as st

from sessions_app.readers.compact import NONE, CompactMap

_NAMES = st.one_of(st.text(max_size=3), st.tuples(st.text(max_size=1), st.text(max_size=1)))


@given(st.lists(st.tuples(_NAMES, st.integers(0, 2**31 - 2)), max_size=300), st.lists(_NAMES, max_size=20))
def test_it_answers_as_a_dictionary_does(pairs, others):
    compact, plain = CompactMap(), {}
    for name, number in pairs:
        compact.set(name, number)
        plain[name] = number
    assert len(compact) == len(plain)
    for name in [*plain, *others]:
        assert compact.get(name) == plain.get(name, NONE)
        assert (name in compact) == (name in plain)


@given(st.lists(_NAMES, max_size=200))
def test_it_numbers_names_in_the_order_in_which_they_come(names):
    compact = CompactMap()
    first = list(dict.fromkeys(names))
    assert [compact.number_of(name) for name in names] == [first.index(name) for name in names]


def test_a_hundred_thousand_ids_take_a_few_bytes_each():
    tracemalloc.start()
    try:
        compact = CompactMap()
        for number in range(100_000):
            compact.set(str(uuid.UUID(int=number)), number)
        held = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert held < 5_000_000
    assert compact.get(str(uuid.UUID(int=77_777))) == 77_777
