"""Hypothesis strategies for sizes and ledgers."""

from __future__ import annotations

from hypothesis import strategies as st

from memfit.model import (
    PHASES,
    Component,
    Evidence,
    EvidenceKind,
    Kind,
    Ledger,
    Size,
    ceil_div,
    const,
    knob,
    maximum,
    minimum,
)

NAMES = ("n_envs", "n_steps", "batch_size")
knob_values = st.fixed_dictionaries({name: st.integers(0, 10**6) for name in NAMES})


def _combine(inner: st.SearchStrategy[Size]) -> st.SearchStrategy[Size]:
    divisor = st.integers(1, 4096)
    return st.one_of(
        st.builds(lambda a, b: a + b, inner, inner),
        st.builds(lambda a, b: a - b, inner, inner),
        st.builds(lambda a, b: a * b, inner, inner),
        st.builds(lambda a, b: a // b, inner, divisor),
        st.builds(ceil_div, inner, divisor),
        # A divisor that is itself a sum, and never zero.
        st.builds(lambda a, b: a // maximum(b, 1), inner, inner),
        st.builds(lambda a, b: ceil_div(a, b * b + 1), inner, inner),
        st.builds(maximum, inner, inner),
        st.builds(minimum, inner, inner),
    )


sizes: st.SearchStrategy[Size] = st.recursive(
    st.one_of(st.integers(-(10**7), 10**7).map(const), st.sampled_from(NAMES).map(knob)),
    _combine,
    max_leaves=12,
)

# Components are never negative: a square and a maximum keep them so.
amounts = st.one_of(
    st.integers(0, 2**40).map(const),
    st.builds(lambda name, each: knob(name) * each, st.sampled_from(NAMES), st.integers(1, 2**20)),
    sizes.map(lambda s: maximum(s, 0)),
)
moments = st.sampled_from((*PHASES, "update.flatten", "update.minibatch", "rollout.first"))


@st.composite
def components(draw: st.DrawFn) -> Component:
    return Component(
        name=draw(st.text("abc.", min_size=1, max_size=5)),
        kind=draw(st.sampled_from(list(Kind))),
        size=draw(amounts),
        phases=tuple(draw(st.sets(moments, min_size=1, max_size=4))),
        evidence=Evidence(kind=EvidenceKind.ASSUMED, where="a test"),
    )


ledgers = st.builds(
    lambda rows, knobs: Ledger(components=tuple(rows), knobs=knobs),
    st.lists(components(), max_size=8),
    knob_values,
)
