"""cairn.micrograd: the same numbers as the plain engine (plain_micrograd.py), and what an engine in C can do wrong."""

import copy
import gc
import math
import os
import pickle
import random
import subprocess
import sys
import weakref
from xml.etree import ElementTree

import pytest

sys.path.insert(0, os.path.dirname(__file__))
import plain_micrograd as plain  # noqa: E402

import cairn  # noqa: E402
from cairn import _micrograd  # noqa: E402
from cairn import micrograd as fast  # noqa: E402
from cairn.micrograd import MLP, Device, Layer, Neuron, Value, ValueBatch, autocast, draw_dot, trace  # noqa: E402

SMALL = {"abs": 1e-12, "rel": 1e-9}


def same(a, b):
    assert a == pytest.approx(b, **SMALL)


# ---- Value ----

def expression(engine):
    """A bit of everything. Returns all values in the order in which they were made."""
    a, b = engine.Value(-4.0), engine.Value(2.0)
    made = [a, b]

    def keep(v):
        made.append(v)
        return v

    c = keep(a + b)
    d = keep(a * b + b**3)
    c = keep(c + (c + 1))
    c = keep(c + (1 + c + (-a)))
    d = keep(d + (d * 2 + (b + a).relu()))
    d = keep(d + (3 * d + (b - a).relu()))
    e = keep(c - d)
    f = keep(e**2)
    g = keep(f / 2.0)
    g = keep(g + 10.0 / f)
    h = keep((g * 0.01).tanh() + (b * 0.1).exp() - (b * b).log() + (a / 3).sigmoid())
    keep(h * b**-0.5 + 5 - (7 - h) + 2 * h)
    return made


def test_expression_as_plain_python():
    ours, theirs = expression(fast), expression(plain)
    ours[-1].backward()
    theirs[-1].backward()
    for a, b in zip(ours, theirs):
        same(a.data, b.data)
        same(a.grad, b.grad)
        assert a._op == b._op
        assert len(a._prev) == len(b._prev)


OPERATIONS = [
    lambda x, y: x + y, lambda x, y: x * y * 0.5, lambda x, y: x - y, lambda x, y: x.relu(), lambda x, y: x.tanh(),
    lambda x, y: x * -0.75, lambda x, y: 1 - x, lambda x, y: (x * 0.1) ** 2, lambda x, y: x / (y * y + 1),
]


def test_random_graphs_as_plain_python():
    for seed in range(60):
        results = []
        for engine in (fast, plain):
            rng = random.Random(seed)
            values = [engine.Value(rng.uniform(-2, 2)) for _ in range(3)] + [engine.Value(rng.randrange(-2, 3))]
            for _ in range(40):
                made = rng.choice(OPERATIONS)(rng.choice(values), rng.choice(values))
                values.append(made if abs(made.data) < 1e3 else made * 1e-3)
            values[-1].backward()
            values[-5].backward()  # gradients add up, those within the graph too
            results.append(values)
        for a, b in zip(*results):
            same(a.data, b.data)
            same(a.grad, b.grad)


def test_repr_and_whole_numbers():
    assert repr(Value(2.0)) == "Value(data=2.0, grad=0)"
    a = Value(3)
    b = a * 2 + 1
    assert repr(b) == "Value(data=7, grad=0)"
    b.backward()
    assert repr(a) == "Value(data=3, grad=2)" and repr(b) == "Value(data=7, grad=1)"
    assert repr(a / 2) == "Value(data=1.5, grad=0)"
    assert repr(Value(-1.5).relu()) == "Value(data=0, grad=0)"
    assert repr(a**2) == "Value(data=9, grad=0)" and (a**2)._op == "**2" and (a**0.5)._op == "**0.5"
    assert repr(Value(2) ** -1) == "Value(data=0.5, grad=0)"
    assert isinstance((Value(1) + 1.0).data, float)
    assert f"{(a / 2).data:.4f}" == "1.5000"
    assert Value(2**60).data == 2**60


def test_prev_is_the_operands_themselves():
    a, b = Value(1.0), Value(2.0)
    c = a + b
    assert c._prev == {a, b} and c._op == "+" and a._prev == set() and a._op == ""
    assert (a + a)._prev == {a}
    (two,) = (a * 2)._prev - {a}
    assert two.data == 2


def test_same_operand_twice():
    a = Value(3.0)
    (a * a + a).backward()
    assert a.grad == 7
    a.grad = 0
    (a + a).backward()
    assert a.grad == 2


def test_power():
    for base, exponent in ((2.0, 3), (2.0, -1), (4.0, 0.5), (-2.0, 3), (0.0, 2), (5.0, 0), (0.0, 0)):
        x = Value(base)
        y = x**exponent
        y.backward()
        same(y.data, base**exponent)
        same(x.grad, exponent * base ** (exponent - 1) if exponent else 0)
    x, n = Value(2.0), Value(3.0)
    (x**n).backward()
    same(x.grad, 12.0)
    same(n.grad, 8 * math.log(2))
    n = Value(3.0)
    (2**n).backward()
    same(n.grad, 8 * math.log(2))
    with pytest.raises(ZeroDivisionError):
        Value(0.0) ** -1
    with pytest.raises(ZeroDivisionError):
        Value(1.0) / 0
    with pytest.raises(ZeroDivisionError):
        (Value(0.0) ** 0.5).backward()
    with pytest.raises(ValueError, match="negative"):
        Value(-8.0) ** 0.5
    with pytest.raises(OverflowError):
        Value(10.0) ** 400


def test_functions_at_the_edges():
    assert Value(1000.0).tanh().data == 1 and Value(-1000.0).sigmoid().data == 0 and Value(1000.0).sigmoid().data == 1
    with pytest.raises(OverflowError):
        Value(1000.0).exp()
    with pytest.raises(ValueError, match="above 0"):
        Value(0.0).log()
    assert math.isnan((Value(float("inf")) * 0).data)


def test_wrong_operands():
    for wrong in ("2", None, [1], 1j):
        with pytest.raises(TypeError):
            Value(1.0) + wrong
        with pytest.raises(TypeError):
            wrong * Value(1.0) if not isinstance(wrong, (str, list)) else Value(1.0) * wrong
        with pytest.raises(TypeError, match="real number"):
            Value(wrong)
    v = Value(1.0)
    with pytest.raises(TypeError, match="real number"):
        v.grad = None
    with pytest.raises(AttributeError):
        del v.data
    with pytest.raises(TypeError):
        Value()
    with pytest.raises(TypeError):
        Value(1.0, (2.0,))
    with pytest.raises(TypeError):
        v._backward = 3
    with pytest.raises(TypeError):
        pow(v, 2, 3)


def test_data_and_grad_can_be_set():
    p = Value(1.0)
    (p * 3).backward()
    p.data -= 0.1 * p.grad
    p.grad = 0
    assert p.data == 0.7 and p.grad == 0
    p.data = 2
    assert repr(p) == "Value(data=2, grad=0)"
    y = p * 5
    p.data = 7.0  # backward reads what is there then
    q = Value(2.0)
    z = p * q
    q.data = 10.0
    z.backward()
    assert p.grad == 10 and q.grad == 7 and y.data == 10


def test_steps_by_hand():
    """The lectures call ._backward() one by one."""
    a, b = Value(2.0), Value(-3.0)
    c = a * b
    d = c.tanh()
    d.grad = 1.0
    d._backward()
    c._backward()
    a._backward()
    same(c.grad, 1 - math.tanh(-6) ** 2)
    same(a.grad, -3 * c.grad)


def cube(x):
    """An operation of the program's own, as the lectures write one."""
    out = Value(x.data**3, (x,), "cube")

    def _backward():
        x.grad += 3 * x.data**2 * out.grad

    out._backward = _backward
    return out


def test_own_operation():
    x = Value(2.0)
    y = cube(x) * 2
    y.backward()
    assert y.data == 16 and x.grad == 24
    (inner,) = (v for v in y._prev if v._op)
    assert inner._op == "cube" and inner._prev == {x}
    with pytest.raises(ZeroDivisionError):
        bad = Value(1.0, (x,), "bad")
        bad._backward = lambda: 1 / 0
        (bad + 1).backward()


def test_own_operation_is_freed():
    gc.collect()
    before = _micrograd.alive()
    for _ in range(100):
        (cube(Value(2.0)) * 2 + 1).backward()
    gc.collect()
    assert _micrograd.alive() == before


def test_attributes_and_weak_references():
    v = Value(1.0, label="v")
    assert v.label == "v"
    v.label = "w"
    v.other = [1, 2]
    assert v.__dict__ == {"label": "w", "other": [1, 2]}
    with pytest.raises(AttributeError):
        v.missing()
    seen = weakref.ref(v)
    v.myself = v
    before = _micrograd.alive()
    del v
    gc.collect()
    assert seen() is None and _micrograd.alive()[0] == before[0] - 1


def test_subclass():
    class Named(Value):
        def __init__(self, name, data):
            super().__init__(data)
            self.name = name

        def __mul__(self, other):
            return "mine"

    a = Named("a", 2.0)
    b = a + 1
    assert type(b) is Value and a * 2 == "mine" and a.name == "a"
    b.backward()
    assert a.grad == 1
    neuron = Neuron(1)
    neuron.w = [Value(1.0)]
    assert neuron([Named("x", 3.0)]).data == 3.0
    gc.collect()


def test_copy_and_pickle():
    v = Value(1.5, label="v")
    v.grad = 2
    for w in (copy.copy(v), copy.deepcopy(v), pickle.loads(pickle.dumps(v))):
        assert (w.data, w.grad, w.label) == (1.5, 2, "v") and w is not v
    model = MLP(2, [3, 1])
    twin = copy.deepcopy(model)
    assert [p.data for p in twin.parameters()] == [p.data for p in model.parameters()]
    assert twin([1.0, 2.0]).data == model([1.0, 2.0]).data
    twin.parameters()[0].data = 100.0
    assert model.parameters()[0].data != 100.0
    with pytest.raises(TypeError, match="without operands"):
        pickle.dumps(v + 1)


def test_numpy_numbers_and_arrays():
    np = pytest.importorskip("numpy")
    v = Value(np.float64(2.0))
    assert repr(v) == "Value(data=2.0, grad=0)" and repr(Value(np.int64(2))) == "Value(data=2, grad=0)"
    for x in (np.float64(3), np.float32(3), np.int64(3), np.int8(3)):
        assert (x * v).data == 6 and (v * x).data == 6 and (x - v).data == 1 and (x / v).data == 1.5
        assert type(x * v) is Value and type(x + v) is Value
    a = np.array([1.0, 2.0]) * v
    assert a.dtype == object and [x.data for x in a] == [2.0, 4.0]
    assert [x.data for x in (v - np.array([1, 2]))] == [1, 0]
    sum(a).backward()
    assert v.grad == 3
    assert np.array([Value(1.0), Value(2.0)]).sum().data == 3
    model = MLP(2, [3, 1])
    row = np.array([0.5, -0.5])
    assert model(row).data == model(list(row)).data == model([0.5, -0.5]).data


# ---- memory ----

def test_deep_chain():
    x = Value(1.0)
    v = x
    for _ in range(1_000_000):
        v = v + 1e-6
    v.backward()
    same(v.data, 2.0)
    assert x.grad == 1
    before = _micrograd.alive()[0]
    del v
    assert _micrograd.alive()[0] < before - 1_999_000


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_temporaries_and_models_are_freed():
    gc.collect()
    before = _micrograd.alive()
    x = Value(1.5)
    for _ in range(200_000):
        x * 2 + 1
    for _ in range(1000):
        model = MLP(3, [4, 4, 2])
        a, b = model([1.0, 2.0, 3.0])
        (a + b).backward()
        assert a._prev
    del x, model, a, b
    assert _micrograd.alive() == before


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="needs /proc")
def test_memory_stays():
    x = Value(1.5)
    for _ in range(10_000):
        x * 2 + 1
    before = resident()
    for _ in range(3_333_334 if os.environ.get("CAIRN_TEST_LONG") else 300_000):
        x * 2 + 1  # two nodes and two leaves
    assert resident() - before < 1 << 20


# ---- neurons, layers, perceptrons ----

def model_pair(nin, nouts, seed=1):
    random.seed(seed)
    ours = MLP(nin, nouts)
    random.seed(seed)
    theirs = plain.MLP(nin, nouts)
    return ours, theirs


def compare_parameters(ours, theirs):
    for p, q in zip(ours.parameters(), theirs.parameters()):
        same(p.data, q.data)
        same(p.grad, q.grad)


def test_names():
    random.seed(0)
    first = random.uniform(-1, 1)
    random.seed(0)
    neuron = Neuron(3)
    assert neuron.w[0].data == first and neuron.b.data == 0 and len(neuron.parameters()) == 4
    assert repr(neuron) == "ReLUNeuron(3)" and repr(Neuron(2, nonlin=False)) == "LinearNeuron(2)"
    assert repr(Layer(2, 2)) == "Layer of [ReLUNeuron(2), ReLUNeuron(2)]"
    assert repr(MLP(1, [2, 1])) == "MLP of [Layer of [ReLUNeuron(1), ReLUNeuron(1)], Layer of [LinearNeuron(2)]]"
    assert len(MLP(2, [16, 16, 1]).parameters()) == 337
    assert isinstance(neuron, fast.Module) and fast.Module().parameters() == []
    assert len(Layer(2, 3)([1, 2])) == 3 and isinstance(Layer(2, 1)([1, 2]), Value)


def test_moons_as_plain_python():
    rng = random.Random(3)
    points = [[rng.uniform(-1, 1), rng.uniform(-1, 1)] for _ in range(8)]
    labels = [1 if x * y > 0 else -1 for x, y in points]
    models = model_pair(2, [5, 4, 1])
    losses = []
    for engine, model in zip((fast, plain), models):
        for _ in range(5):
            scores = [model(list(map(engine.Value, point))) for point in points]
            loss = sum((1 + -y * s).relu() for y, s in zip(labels, scores)) * (1 / len(points))
            loss = loss + 1e-4 * sum(p * p for p in model.parameters())
            model.zero_grad()
            loss.backward()
            for p in model.parameters():
                p.data -= 0.5 * p.grad
        losses.append(loss.data)
    same(*losses)
    compare_parameters(*models)


def test_forward_is_the_same_bits():
    ours, theirs = model_pair(7, [5, 3])
    x = [random.uniform(-3, 3) for _ in range(7)]
    assert [v.data for v in ours(x)] == [v.data for v in theirs(x)]


def walk(root):
    """All values behind root, in an order that does not depend on addresses."""
    found, waiting = {}, [root]
    while waiting:
        v = waiting.pop()
        if v not in found:
            found[v] = (round(v.data, 9), round(v.grad, 9), v._op)
            waiting.extend(v._prev)
    return sorted(found.values())


@pytest.mark.parametrize("when", ["before", "after", "both"])
def test_looking_inside_a_layer(when):
    """Every value within a layer can be seen, with the numbers and gradients of the plain engine."""
    ours, theirs = model_pair(3, [4, 3, 2])
    x = [0.5, -1.0, 2.0]
    roots = []
    for engine, model in ((fast, ours), (plain, theirs)):
        a, b = model([engine.Value(v) for v in x])
        root = (a * a + b).tanh()
        if engine is fast and when != "after":
            walk(root)
        root.backward()
        roots.append(root)
    if when == "before":
        compare_parameters(ours, theirs)
    assert walk(roots[0]) == walk(roots[1])
    compare_parameters(ours, theirs)
    for root in roots:
        root.backward()  # a second time through the same graph, with what it has gathered
    compare_parameters(ours, theirs)
    assert walk(roots[0]) == walk(roots[1])


def test_outputs_one_by_one():
    """backward() of one output leaves alone what only others came from; a second one adds up."""
    ours, theirs = model_pair(3, [4, 4, 3])
    results = []
    for model in (ours, theirs):
        outs = model([1.0, -0.5, 0.25])
        for out in (outs[2], outs[0], outs[2]):
            out.backward()
        results.append([v.grad for v in outs])
        assert outs[1].grad == 0
    assert results[0] == results[1]
    compare_parameters(ours, theirs)


def test_partly_expanded():
    ours, theirs = model_pair(2, [3, 3, 2])
    roots = []
    for engine, model in ((fast, ours), (plain, theirs)):
        a, b = model([engine.Value(1.0), engine.Value(2.0)])
        if model is ours:
            product = next(v for v in a._prev if v._op == "*")
            assert any(v._prev for v in product._prev)  # a row of the layer before is expanded, too
        root = a * 2 + b * 3
        root.backward()
        roots.append(root)
    compare_parameters(ours, theirs)
    assert walk(roots[0]) == walk(roots[1])


def test_graph_within_is_that_of_then():
    """After a step the old graph still shows the numbers it was computed with."""
    ours, _ = model_pair(2, [3, 1])
    out = ours([1.0, 2.0])
    before = [p.data for p in ours.parameters()]
    for p in ours.parameters():
        p.data = 5.0
    inside = {data for data, _, op in walk(out) if op == "*"}
    assert {round(before[0] * 1.0, 9), round(before[1] * 2.0, 9)} <= inside
    assert sum(v.data for v in out._prev) == out.data


def test_layers_by_hand():
    random.seed(5)
    one, two = Layer(2, 3), Layer(3, 2)
    x = [Value(1.0), Value(-2.0)]
    h = one(x)
    assert isinstance(h, list) and len(h) == 3
    out = two(h)
    (out[0] + out[1] + h[0]).backward()
    random.seed(5)
    first = [plain.Neuron(2) for _ in range(3)]
    second = [plain.Neuron(3) for _ in range(2)]
    px = [plain.Value(1.0), plain.Value(-2.0)]
    ph = [n(px) for n in first]
    pout = [n(ph) for n in second]
    (pout[0] + pout[1] + ph[0]).backward()
    for a, b in zip(x + h + out, px + ph + pout):
        same(a.data, b.data)
        same(a.grad, b.grad)


def test_parameters_may_change():
    model = MLP(2, [2, 1])
    x = [1.0, 2.0]
    model(x)
    neuron = model.layers[0].neurons[0]
    neuron.w[0] = Value(0.25)
    neuron.b = Value(10.0)
    same(neuron(x).data, 10.25 + 2 * neuron.w[1].data)
    expected = sum(w.data * n(x).data for w, n in zip(model.layers[1].neurons[0].w, model.layers[0].neurons))
    same(model(x).data, expected)
    neuron.nonlin = False
    neuron.b.data = -100.0
    assert neuron(x).data < -50 and model.layers[0](x)[0].data < -50
    base = Value(2.0)  # a weight that was computed
    neuron.w[0] = base * 3
    neuron(x).backward()
    assert base.grad == 3
    model.layers.append(Layer(1, 1))
    assert isinstance(model(x), Value)
    model.layers[0].neurons.pop()
    with pytest.raises(ValueError, match="inputs"):
        model(x)


def test_own_neuron_in_a_layer():
    class Tanh(Neuron):
        def __call__(self, x):
            return super().__call__(x).tanh()

    layer = Layer(2, 2)
    layer.neurons = [Tanh(2, nonlin=False) for _ in range(2)]
    out = layer([3.0, 4.0])
    assert all(-1 <= v.data <= 1 and v._op == "tanh" for v in out)
    out[0].backward()
    assert layer.neurons[0].b.grad == pytest.approx(1 - out[0].data ** 2)


def test_hook_within_a_model():
    """A function of the program's own may look at anything on the way."""
    model = MLP(2, [3, 1])
    x = Value(0.5)
    seen = []
    y = cube(x)
    out = model([y, 1.0])

    def look():
        seen.append(sum(v.grad for v in out._prev))
        x.grad += 3 * x.data**2 * y.grad

    y._backward = look
    out.backward()
    assert seen == [2] and x.grad == pytest.approx(0.75 * y.grad)


def test_wrong_inputs_of_layers():
    for model in (Neuron(2), Layer(2, 2), MLP(2, [2, 1])):
        with pytest.raises(ValueError, match="2 inputs got 3"):
            model([1, 2, 3])
        with pytest.raises(TypeError):
            model(["a", 1.0])
        with pytest.raises(TypeError):
            model()
        with pytest.raises(TypeError):
            model(3)
    assert Neuron(0)([]).data == 0


def test_inputs_that_run_python():
    """A number of another kind may change the list it is in, and the model that is being called."""
    model = MLP(2, [3, 1])

    class Wild:
        def __init__(self, act):
            self.act = act

        def __float__(self):
            self.act()
            return 1.0

    x = [Wild(lambda: x.clear()), 2.0]
    with pytest.raises(ValueError, match="inputs"):
        model(x)

    def change():
        for layer in model.layers:
            for neuron in layer.neurons:
                neuron.w = [Value(w.data) for w in neuron.w]
        model([1.0, 2.0])

    expected = model([1.0, 2.0]).data
    assert model([Wild(change), 2.0]).data == expected
    model.layers[0].neurons[0].nonlin = 1  # true, but no bool
    assert model([1.0, 2.0]).data == expected


def test_failed_backward_leaves_nothing_behind():
    model = MLP(1, [2, 1])
    zero = Value(0.0)
    bad = model([zero**0.5])
    with pytest.raises(ZeroDivisionError):
        bad.backward()
    model.zero_grad()
    model([1.0]).backward()
    grads = [p.grad for p in model.parameters()]
    model.zero_grad()
    model([1.0]).backward()
    assert grads == [p.grad for p in model.parameters()]


def test_whole_weights():
    neuron = Neuron(2)
    neuron.w = [Value(2), Value(-1)]
    out = neuron([3, 1])
    assert repr(out) == "Value(data=5, grad=0)"
    out.backward()
    assert repr(neuron.w[0]) == "Value(data=2, grad=3)"


def test_many_layers():
    model = MLP(2, [2] * 100 + [1])
    model([1.0, 2.0]).backward()
    assert len(model.parameters()) == 100 * 6 + 3


# ---- drawing ----

def test_drawing(tmp_path):
    a, b = Value(2.0, label="a<b"), Value(-3.0)
    root = (a * b + 10.0).relu()
    root.backward()
    nodes, edges = trace(root)
    assert len(nodes) == 6 and len(edges) == 5 and (a, next(v for v in nodes if v._op == "*")) in edges
    for rankdir in ("LR", "TB"):
        drawing = draw_dot(root, rankdir=rankdir)
        picture = ElementTree.fromstring(drawing._repr_svg_())
        texts = [t.text for t in picture.iter("{http://www.w3.org/2000/svg}text")]
        assert "a<b" in texts and "data 4.0000" in texts and "ReLU" in texts and "grad -3.0000" in texts
        assert len(texts) == 6 * 2 + 1 + 3
    path = tmp_path / "graph.svg"
    drawing.save(path)
    assert path.read_text().startswith("<svg")
    assert draw_dot(Value(1.0)).svg
    with pytest.raises(ValueError, match="rankdir"):
        draw_dot(root, rankdir="up")
    with pytest.raises(ValueError, match="2000"):
        draw_dot(MLP(40, [40, 1])([1.0] * 40))


def test_drawn_boxes_do_not_overlap():
    root = MLP(3, [4, 1])([1.0, 2.0, 3.0])
    for rankdir in ("LR", "TB"):
        picture = ElementTree.fromstring(draw_dot(root, rankdir=rankdir).svg)
        boxes = [tuple(float(r.get(k)) for k in ("x", "y", "width", "height"))
                 for r in picture.iter("{http://www.w3.org/2000/svg}rect")]
        width, height = float(picture.get("width")), float(picture.get("height"))
        for i, (x, y, w, h) in enumerate(boxes):
            assert 0 <= x and x + w <= width and 0 <= y and y + h <= height
            for x2, y2, w2, h2 in boxes[:i]:
                assert x + w <= x2 or x2 + w2 <= x or y + h <= y2 or y2 + h2 <= y


# ---- devices ----

def test_devices():
    assert Device.cpu() == Device("cpu") and Device("gpu:0") == Device("gpu") != Device("gpu:1")
    assert hash(Device("gpu:0")) == hash(Device("gpu"))
    assert Value(1.0).device == Device.cpu() and (Value(1.0) + 2).device == Device.cpu()
    v = Value(1.0)
    assert v.to("cpu") is v and v.to(Device.cpu()) is v
    assert repr(Device.cpu()) == "Device('cpu')" and not Device.cpu().is_gpu
    with pytest.raises(ValueError, match="tpu"):
        Device("tpu")


def gpu():
    if not Device.is_gpu_available():
        with pytest.raises(cairn.DeviceError, match="there is no GPU"):
            Device.gpu()
        pytest.skip("no GPU")
    return Device.gpu()


def test_gpu():
    device = gpu()
    v = Value(0.5)
    b = v.to(device)
    assert isinstance(b, ValueBatch) and b.device == device and (2 * b + 1).device == device
    y = (b * b).tanh()
    y.backward()
    assert v.grad == pytest.approx(1 - math.tanh(0.25) ** 2, rel=1e-4)
    assert y.to("cpu").device == Device.cpu()
    for other in (Value(1.0), ValueBatch([1.0])):
        with pytest.raises(cairn.DeviceError, match="different devices"):
            y + other
        with pytest.raises(cairn.DeviceError, match="different devices"):
            other * y
    model = MLP(2, [4, 1])
    points = [[0.5, 1.0], [-1.0, 2.0], [0.25, -0.125]]
    gradients = []
    for where in ("cpu", device):
        model.zero_grad()
        out = model(ValueBatch(points, device=where))
        assert out.device == Device.of(where)
        (out**2).mean().backward()
        gradients.append([p.grad for p in model.parameters()])
    assert gradients[0] == pytest.approx(gradients[1], rel=1e-4, abs=1e-6)


# ---- batches ----

DOUBLE = {"dtype": cairn.float64}


def test_batch_as_values():
    """The operators of a batch, against the same with values one by one."""
    def formula(x, y):
        z = (x * y + 3 - x) / (y * y + 1) - 2 / (1 + y**2)
        return (z.relu() + z.tanh() * 2 + (x * 0.5).exp() - (y * y).log() + (-x).sigmoid() * x) ** 2 + (1 - x)

    xs, ys = [0.5, -1.0, 2.0, 3.5], [1.0, 0.25, -2.0, -0.5]
    x, y = ValueBatch(xs, **DOUBLE), ValueBatch(ys, **DOUBLE)
    out = formula(x, y)
    out.backward()
    for i, (a, b) in enumerate(zip(xs, ys)):
        a, b = Value(a), Value(b)
        one = formula(a, b)
        one.backward()
        same(out.tolist()[i], one.data)
        same(x.grad.tolist()[i], a.grad)
        same(y.grad.tolist()[i], b.grad)
    assert out.shape == (4,) and len(out) == 4 and out.dtype == cairn.float64 and out.device == Device.cpu()
    x.grad = 0
    assert x.grad.tolist() == [0, 0, 0, 0]


def test_batch_of_values_and_numbers():
    a, b = Value(2.0), Value(3.0)
    c = a * b  # a value that was computed: the gradient goes on
    out = (ValueBatch([a, c, 1.0], **DOUBLE) * 2).sum()
    assert out.item() == 18
    out.backward()
    assert (a.grad, b.grad, c.grad) == (2 + 2 * 3, 4, 2)
    v = Value(5.0)
    (ValueBatch([1.0, 2.0]) * v + v).sum().backward()
    assert v.grad == 5
    (v - ValueBatch([1.0, 2.0, 3.0])).sum().backward()
    assert v.grad == 8
    assert (ValueBatch([1.0, 2.0]) + [10, 20]).tolist() == [11, 22]


def test_batch_repeats_and_graph():
    one, many = ValueBatch([2.0]), ValueBatch([[1.0, 2.0], [3.0, 4.0]])
    out = (one * many).sum()
    assert out._op == "sum" and {v._op for v in out._prev} == {"*"}
    out.backward()
    assert one.grad.tolist() == [10] and many.grad.tolist() == [[2, 2], [2, 2]]
    assert repr(one) == "ValueBatch(data=[2.0], grad=[10.0])"
    assert "(2, 2)" in draw_dot(out).svg
    with pytest.raises(TypeError):
        one + "a"
    with pytest.raises(ValueError):
        ValueBatch([1.0, 2.0]) + ValueBatch([1.0, 2.0, 3.0])
    with pytest.raises(TypeError):
        one**one


def test_batch_numpy():
    np = pytest.importorskip("numpy")
    x = ValueBatch(np.array([1.0, 2.0]))
    assert (np.float64(2) * x).tolist() == [2, 4] and (np.array([1, 2]) * x).tolist() == [1, 4]
    assert (x - np.array([1, 2])).tolist() == [0, 0]


@pytest.mark.parametrize("nouts", [[4, 1], [3, 5, 2]])
def test_model_on_a_batch(nouts):
    random.seed(7)
    model = MLP(2, nouts)
    points = [[random.uniform(-2, 2), random.uniform(-2, 2)] for _ in range(6)]
    model.layers[0].neurons[1].nonlin = False  # a layer of both kinds

    def loss(outs):
        return sum(out * out + out for out in (outs if isinstance(outs, list) else [outs]))

    loss_of_values = sum(loss(model(p)) for p in points)
    loss_of_values.backward()
    expected = [p.grad for p in model.parameters()]
    columns = [ValueBatch(list(column), **DOUBLE) for column in zip(*points)]
    for x in (ValueBatch(points, **DOUBLE), columns):
        model.zero_grad()
        total = loss(model(x)).sum()
        total.backward()
        same(total.item(), loss_of_values.data)
        same([p.grad for p in model.parameters()], expected)
    assert columns[0].grad.shape == (6,)
    with pytest.raises(ValueError, match="2 inputs got 3"):
        model(ValueBatch([[1.0, 2.0, 3.0]]))
    with pytest.raises(ValueError, match="rows"):
        model(ValueBatch([1.0, 2.0]))


def test_autocast():
    x = ValueBatch([1.0, 2.0, 3.0])
    model = MLP(1, [4, 1])
    for dtype in (cairn.bfloat16, cairn.float16):
        with autocast(dtype):
            y = x * x + 1
            out = model([x])
            with autocast(enabled=False):
                assert (x * x).dtype == cairn.float32
        assert y.dtype == dtype and out.dtype == dtype
        (y + 0).backward()
        out.backward()
        assert x.grad.dtype == cairn.float32
    assert (x * x).dtype == cairn.float32
    with autocast():
        assert (x * x).dtype == cairn.bfloat16
    exact = MLP(2, [8, 1])
    half = copy.deepcopy(exact)
    points = ValueBatch([[0.5, 1.0], [-1.0, 2.0]])
    exact(points).sum().backward()
    with autocast(cairn.bfloat16):
        half(points).sum().backward()
    expected = [p.grad for p in exact.parameters()]
    assert [p.grad for p in half.parameters()] == pytest.approx(expected, rel=0.05, abs=0.05)


def test_batches_are_freed_at_once():
    gc.disable()
    try:
        x = ValueBatch([1.0, 2.0])
        out = (x * x).tanh()
        out.backward()
        seen = weakref.ref(out)
        del out
        assert seen() is None
    finally:
        gc.enable()


def test_import_is_light():
    code = """if True:
        import cairn, sys
        assert "cairn.micrograd" not in sys.modules
        assert cairn.micrograd.Value(1).data == 1
        assert "numpy" not in sys.modules
    """
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)
