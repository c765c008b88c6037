"""Calls that Hypothesis draws: it looks for a difference that nobody knows, and shrinks the arguments that show it.

Hypothesis draws what a call looks like: dtypes, shapes, views, options. The elements of tensors come from a seed that it
draws, because it keeps at most some thousand choices of an example.
"""

import collections
import random

import cases
import compare


class Unknown(AssertionError):
    """A difference that the table does not have."""


def search_operator(lib, name, args, tell):
    """As parity.compare_operator: (counts, differences). Of the unknown ones only the shrunk example is kept."""
    from hypothesis import HealthCheck, Phase, given, seed, settings, strategies

    rows, counts, found = compare.known_differences(), collections.Counter(), {}
    turns = strategies.integers(0, len(cases.NAMES) ** 3 - 1)
    seeds = strategies.integers(0, 2**32 - 1)
    for form in lib.forms(name):
        last = {}

        @seed(args.seed)
        @settings(max_examples=args.search, deadline=None, database=None, print_blob=False, report_multiple_bugs=False,
                  suppress_health_check=list(HealthCheck), phases=[Phase.generate, Phase.shrink])
        @given(strategies.randoms(use_true_random=False), turns, seeds)
        def call(r, turn, elements_seed):
            own = {}
            draw = cases.Draw(r, turn, random.Random(elements_seed))
            difference = compare.compare_call(lib, name, form, draw, tell, counts, own)
            if difference and not compare.is_known(rows, name, *difference, 0):
                last.clear()
                last.update(own)
                raise Unknown
            for key, (count, *example) in own.items():
                found.setdefault(key, [0, *example])[0] += count
        try:
            call()
        except Unknown:
            found.update(last)
    return counts, found
