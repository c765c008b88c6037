"""Graphs of values as SVG, laid out here: nothing else has to be installed.

The layout goes the usual way of layered drawings. Every node gets a layer, one after its farthest operand. Edges that
pass layers by get a point in each of them. Sweeps sort every layer by the mean place of the neighbours, then move the
nodes towards that place as far as their neighbours in the layer let them.
"""

import html

LIMIT = 2000  # nodes of a drawing: more can neither be laid out soon nor be read
HEIGHT = 28
GAP = {"LR": (34, 10), "TB": (16, 30)}  # between layers' sides and neighbours: (horizontal, vertical)


def trace(root):
    """All values behind `root` and the pairs (operand, result): two sets."""
    nodes, edges, waiting = {root}, set(), [root]
    while waiting:
        value = waiting.pop()
        for operand in value._prev:
            edges.add((operand, value))
            if operand not in nodes:
                nodes.add(operand)
                waiting.append(operand)
        if len(nodes) > LIMIT:
            raise ValueError(f"the graph has more than {LIMIT} values: draw a smaller part of it")
    return nodes, edges


def _text(number):
    if isinstance(number, (int, float)):
        return f"{number:.4f}"
    return str(tuple(number.shape))


def _label(value):
    label = str(getattr(value, "label", ""))
    return ([label] if label else []) + [f"data {_text(value.data)}", f"grad {_text(value.grad)}"]


class _Box:
    """A node of the layout: a value (fields), an operation (one field), or a point of a long edge (none)."""

    def __init__(self, fields, round=False):
        self.fields = fields
        self.round = round
        self.before, self.after = [], []
        self.layer = 0
        self.place = 0.0  # the middle, across the layers
        self.widths = [_width(field) for field in fields]
        self.width = HEIGHT * max(1, sum(self.widths) / HEIGHT) if fields else 0
        if round:
            self.width = max(HEIGHT, self.widths[0])


def _width(text):
    return 7.2 * len(text) + 14


def _connect(a, b):
    a.after.append(b)
    b.before.append(a)


def _boxes(root):
    """Boxes for all values and operations behind root, connected, operands first."""
    order, _ = _in_order(root)
    boxes, all_boxes = {}, []
    for value in order:
        box = boxes[value] = _Box(_label(value))
        if value._op:
            operation = _Box([value._op], round=True)
            all_boxes.append(operation)
            _connect(operation, box)
            for operand in _operands(value):
                _connect(boxes[operand], operation)
        all_boxes.append(box)
    return all_boxes


def _operands(value):
    return sorted(value._prev, key=lambda v: (str(getattr(v, "label", "")), v._op))


def _in_order(root):
    trace(root)  # refuses what is too large
    order, seen, waiting = [], set(), [(root, False)]
    while waiting:
        value, done = waiting.pop()
        if done:
            order.append(value)
        elif value not in seen:
            seen.add(value)
            waiting.append((value, True))
            waiting.extend((operand, False) for operand in reversed(_operands(value)))
    return order, seen


def _layers(boxes):
    """Lists of boxes, one for each layer; edges connect neighbouring layers only."""
    for box in boxes:  # operands come first
        box.layer = max((b.layer + 1 for b in box.before), default=0)
    for box in reversed(boxes):  # a leaf stands right before what uses it
        if not box.before and box.after:
            box.layer = min(b.layer for b in box.after) - 1
    layers = [[] for _ in range(1 + max(box.layer for box in boxes))]
    for box in boxes:
        layers[box.layer].append(box)
    for box in boxes:
        for i, after in enumerate(box.after):
            last = box
            for layer in range(box.layer + 1, after.layer):
                point = _Box([])
                point.layer = layer
                layers[layer].append(point)
                point.before = [last]
                if last is box:
                    box.after[i] = point
                else:
                    last.after = [point]
                last = point
            if last is not box:
                last.after = [after]
                after.before[after.before.index(box)] = last
    return layers


def _mean(boxes):
    return sum(b.place for b in boxes) / len(boxes)


def _extent(box, rankdir):
    return (HEIGHT if box.fields else 4) if rankdir == "LR" else max(box.width, 4)


def _pack(layer, wishes, rankdir):
    """Places as near to the wishes as the order and the extents allow.

    Boxes that would overlap become a group that stands where its members wish on average.
    """
    gap = GAP[rankdir][1 if rankdir == "LR" else 0]
    groups = []  # [sum of wished starts, number of members, extent]; offsets of the members
    for box, wish in zip(layer, wishes):
        extent = _extent(box, rankdir) + gap
        groups.append([wish - extent / 2, 1, extent, [(box, 0.0)]])
        while len(groups) > 1:
            a, b = groups[-2], groups[-1]
            if a[0] / a[1] + a[2] <= b[0] / b[1]:
                break
            a[3] += [(member, offset + a[2]) for member, offset in b[3]]
            a[0] += b[0] - b[1] * a[2]
            a[1] += b[1]
            a[2] += b[2]
            groups.pop()
    for total, count, _, members in groups:
        for member, offset in members:
            member.place = total / count + offset + (_extent(member, rankdir) + gap) / 2


def _arrange(layers, rankdir):
    for layer in layers:
        _pack(layer, [0.0] * len(layer), rankdir)
    for sweep in range(16):
        forward = sweep % 2 == 0
        for layer in layers if forward else reversed(layers):
            wishes = {}
            for box in layer:
                near = box.before if forward else box.after
                wishes[box] = _mean(near or box.after or box.before) if box.before or box.after else 0.0
            if sweep < 8:  # the order is settled first, then the places
                layer.sort(key=lambda box: wishes[box])
            else:
                for box in layer:
                    wishes[box] = _mean(box.before + box.after) if box.before or box.after else 0.0
            _pack(layer, [wishes[box] for box in layer], rankdir)


class Drawing:
    """A picture of a graph: `.svg` is its text. A notebook shows it by itself."""

    def __init__(self, svg):
        self.svg = svg

    def _repr_svg_(self):
        return self.svg

    def __repr__(self):
        return f"Drawing({len(self.svg)} bytes of SVG)"

    def save(self, path):
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.svg)
        return path

    def render(self, filename="graph", **_):
        """Writes FILENAME.svg."""
        return self.save(f"{filename}.svg")


STYLE = (
    ".v{fill:#fff;stroke:#555}.o{fill:#eaf1fb;stroke:#4a78b5}.e{fill:none;stroke:#888}.a{fill:#888}"
    "text{font:12px ui-monospace,monospace;text-anchor:middle;fill:#222}"
)


def _positions(layers, rankdir):
    """Writes x and y, the middles, into the boxes; returns the size of the picture."""
    along = GAP[rankdir][0 if rankdir == "LR" else 1]
    at = 10.0
    low = min(box.place - _extent(box, rankdir) / 2 for layer in layers for box in layer)
    high = max(box.place + _extent(box, rankdir) / 2 for layer in layers for box in layer)
    for layer in layers:
        thick = max(box.width for box in layer) if rankdir == "LR" else HEIGHT
        for box in layer:
            across = box.place - low + 10
            box.x, box.y = (at + thick / 2, across) if rankdir == "LR" else (across, at + thick / 2)
            box.half = (thick if not box.fields else box.width) / 2 if rankdir == "LR" else HEIGHT / 2
        at += thick + along
    size = (at - along + 10, high - low + 20)
    return size if rankdir == "LR" else size[::-1]


def _curve(points, rankdir):
    """A smooth line through the points."""
    path = f"M{points[0][0]:.1f} {points[0][1]:.1f}"
    for (x0, y0), (x1, y1) in zip(points, points[1:]):
        if rankdir == "LR":
            middle = (x0 + x1) / 2
            path += f"C{middle:.1f} {y0:.1f} {middle:.1f} {y1:.1f} {x1:.1f} {y1:.1f}"
        else:
            middle = (y0 + y1) / 2
            path += f"C{x0:.1f} {middle:.1f} {x1:.1f} {middle:.1f} {x1:.1f} {y1:.1f}"
    return path


def _edge_svg(box, first, rankdir):
    forward = (1, 0) if rankdir == "LR" else (0, 1)
    points = [(box.x + forward[0] * box.half, box.y + forward[1] * box.half)]
    to = first
    while not to.fields:
        points.append((to.x - forward[0] * to.half, to.y - forward[1] * to.half))
        points.append((to.x + forward[0] * to.half, to.y + forward[1] * to.half))
        to = to.after[0]
    x, y = to.x - forward[0] * to.half, to.y - forward[1] * to.half
    points.append((x - 5 * forward[0], y - 5 * forward[1]))
    side = (3.5 * forward[1], 3.5 * forward[0])
    head = (f"M{x:.1f} {y:.1f}L{x - 7 * forward[0] + side[0]:.1f} {y - 7 * forward[1] + side[1]:.1f}"
            f"L{x - 7 * forward[0] - side[0]:.1f} {y - 7 * forward[1] - side[1]:.1f}Z")
    return f'<path class="e" d="{_curve(points, rankdir)}"/><path class="a" d="{head}"/>'


def _box_svg(box):
    left, top = box.x - box.width / 2, box.y - HEIGHT / 2
    if box.round:
        text = html.escape(box.fields[0])
        return (f'<rect class="o" x="{left:.1f}" y="{top:.1f}" width="{box.width:.1f}" height="{HEIGHT}" rx="14"/>'
                f'<text x="{box.x:.1f}" y="{box.y + 4:.1f}">{text}</text>')
    parts = [f'<rect class="v" x="{left:.1f}" y="{top:.1f}" width="{box.width:.1f}" height="{HEIGHT}" rx="3"/>']
    for i, (field, width) in enumerate(zip(box.fields, box.widths)):
        if i:
            parts.append(f'<path class="v" d="M{left:.1f} {top:.1f}v{HEIGHT}"/>')
        parts.append(f'<text x="{left + width / 2:.1f}" y="{box.y + 4:.1f}">{html.escape(field)}</text>')
        left += width
    return "".join(parts)


def draw_dot(root, format="svg", rankdir="LR"):
    """Draws the graph behind `root`: every value with its number and gradient, every operation.

    rankdir: "LR" from left to right, "TB" from top to bottom. A notebook shows the result; save(path) writes it.
    """
    if rankdir not in GAP:
        raise ValueError(f"rankdir must be 'LR' or 'TB', got {rankdir!r}")
    if format != "svg":
        raise ValueError(f"format must be 'svg', got {format!r}")
    layers = _layers(_boxes(root))
    _arrange(layers, rankdir)
    width, height = _positions(layers, rankdir)
    boxes = [box for layer in layers for box in layer if box.fields]
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
             f'viewBox="0 0 {width:.0f} {height:.0f}"><style>{STYLE}</style>']
    parts += [_edge_svg(box, after, rankdir) for box in boxes for after in box.after]
    parts += [_box_svg(box) for box in boxes]
    return Drawing("\n".join([*parts, "</svg>\n"]))
