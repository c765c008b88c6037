"""Nested containers as a list of leaves and a spec of the rest: torch.utils._pytree.

Containers are dicts, OrderedDicts, lists, tuples, named tuples and deques; anything else, None too, is a leaf.
"""

from collections import OrderedDict, defaultdict, deque


def _is_namedtuple(x):
    return isinstance(x, tuple) and hasattr(x, "_fields")


class TreeSpec:
    """What is left of a tree without its leaves."""

    def __init__(self, type=None, context=None, children_specs=()):
        self.type, self.context, self.children_specs = type, context, list(children_specs)
        self.num_leaves = 1 if type is None else sum(c.num_leaves for c in self.children_specs)

    def is_leaf(self):
        return self.type is None

    def unflatten(self, leaves):
        return tree_unflatten(leaves, self)

    def __eq__(self, other):
        return isinstance(other, TreeSpec) and (self.type, self.context, self.children_specs) == (
            other.type, other.context, other.children_specs)

    def __repr__(self):
        if self.type is None:
            return "*"
        return f"TreeSpec({self.type.__name__}, {self.context}, {self.children_specs})"


LeafSpec = TreeSpec


def _taken_apart(tree):
    """(type, context, children); the type of a leaf is None."""
    kind = type(tree)
    if kind in (dict, OrderedDict):
        return kind, list(tree), list(tree.values())
    if kind is defaultdict:
        return kind, [tree.default_factory, list(tree)], list(tree.values())
    if kind in (list, tuple) or _is_namedtuple(tree):
        return kind, None, list(tree)
    if kind is deque:
        return kind, tree.maxlen, list(tree)
    return None, None, []


def _put_together(spec, children):
    if spec.type in (dict, OrderedDict):
        return spec.type(zip(spec.context, children))
    if spec.type is defaultdict:
        return defaultdict(spec.context[0], zip(spec.context[1], children))
    if spec.type is deque:
        return deque(children, spec.context)
    return spec.type(*children) if hasattr(spec.type, "_fields") else spec.type(children)


def tree_flatten(tree, is_leaf=None):
    """(leaves, spec)"""
    kind, context, children = (None, None, []) if is_leaf is not None and is_leaf(tree) else _taken_apart(tree)
    if kind is None:
        return [tree], TreeSpec()
    leaves, specs = [], []
    for child in children:
        found, spec = tree_flatten(child, is_leaf)
        leaves += found
        specs.append(spec)
    return leaves, TreeSpec(kind, context, specs)


def tree_unflatten(leaves, treespec):
    """The tree again."""
    leaves = list(leaves)
    if len(leaves) != treespec.num_leaves:
        raise ValueError(f"tree_unflatten: {len(leaves)} leaves for a spec of {treespec.num_leaves}")
    rest = iter(leaves)

    def build(spec):
        return next(rest) if spec.type is None else _put_together(spec, [build(c) for c in spec.children_specs])

    return build(treespec)


def tree_leaves(tree, is_leaf=None):
    return tree_flatten(tree, is_leaf)[0]


def tree_structure(tree, is_leaf=None):
    return tree_flatten(tree, is_leaf)[1]


def tree_map(func, tree, *rests, is_leaf=None):
    """A tree of func(leaf, ...); the others have the structure of the first."""
    leaves, spec = tree_flatten(tree, is_leaf)
    others = [tree_flatten(r, is_leaf) for r in rests]
    if any(s != spec for _, s in others):
        raise ValueError("tree_map: the trees differ in structure")
    return tree_unflatten([func(*each) for each in zip(leaves, *(found for found, _ in others))], spec)


def tree_map_(func, tree, *rests, is_leaf=None):
    """Calls func for each leaf, and returns the tree itself."""
    tree_map(func, tree, *rests, is_leaf=is_leaf)
    return tree


def tree_map_only(kind, func, tree, is_leaf=None):
    """func for leaves of a type, or for which a function is true; others stay."""
    fits = kind if callable(kind) and not isinstance(kind, type) else lambda x: isinstance(x, kind)
    return tree_map(lambda x: func(x) if fits(x) else x, tree, is_leaf=is_leaf)


def tree_all(pred, tree, is_leaf=None):
    return all(map(pred, tree_leaves(tree, is_leaf)))


def tree_any(pred, tree, is_leaf=None):
    return any(map(pred, tree_leaves(tree, is_leaf)))
