"""L-BFGS, whose step is a whole minimisation: it calls the closure several times."""

from .. import _C
from .optimizer import Optimizer


class LBFGS(Optimizer):
    """Limited-memory BFGS. line_search_fn is None or "strong_wolfe". There is one group of parameters."""

    _computes = True
    _whole = ("func_evals", "n_iter")

    def __init__(self, params, lr=1, max_iter=20, max_eval=None, tolerance_grad=1e-7, tolerance_change=1e-9,
                 history_size=100, line_search_fn=None, *, maximize=False):
        if not 0.0 <= lr:
            raise ValueError(f"Invalid learning rate: {lr}")
        if line_search_fn not in (None, "strong_wolfe"):
            raise RuntimeError("only 'strong_wolfe' is supported")
        if max_eval is None:
            max_eval = max_iter * 5 // 4
        self._made = None  # (what it was made for, the C object)
        super().__init__(params, dict(lr=lr, max_iter=max_iter, max_eval=max_eval, tolerance_grad=tolerance_grad,
                                      tolerance_change=tolerance_change, history_size=history_size,
                                      line_search_fn=line_search_fn, maximize=maximize))
        if len(self.param_groups) != 1:
            raise ValueError("LBFGS doesn't support per-parameter options (parameter groups)")

    def __setstate__(self, state):
        super().__setstate__(state)
        self._made = None
        self._push()

    def _object(self):
        """The C object. It is made again, with its state, when a number or the parameters have changed."""
        group = self.param_groups[0]
        names = ("max_iter", "max_eval", "tolerance_grad", "tolerance_change", "history_size", "line_search_fn",
                 "maximize")
        numbers = [group[name] for name in names]
        key = (tuple(id(p) for p in group["params"]), tuple(numbers))
        if self._made is None or self._made[0] != key:
            old = self._made and self._made[0][0] == key[0] and _C.lbfgs_state(self._made[1])
            numbers[-2] = numbers[-2] == "strong_wolfe"
            made = _C.lbfgs_new(group["params"], float(group["lr"]), *numbers)
            if old:
                _C.lbfgs_load(made, *old)
            self._made = (key, made)
        return self._made[1]

    def step(self, closure):
        """Minimises. closure clears the gradients, computes the loss, calls backward, and returns the loss."""
        before = _C._set_grad_enabled(True)
        try:
            return _C.lbfgs_step(self._object(), float(self.param_groups[0]["lr"]), closure)
        finally:
            _C._set_grad_enabled(before)

    # ---- the state in PyTorch's form, as that of the first parameter ----

    def _pull(self):
        if self._made is None:
            return
        tensors, texts = _C.lbfgs_state(self._made[1])
        if int(texts["state/0/n_iter"]) == 0:
            return
        pairs = range(int(texts["state/0/pairs"]))
        state = {name: int(texts["state/0/" + name]) for name in self._whole}
        state.update((name, float(texts["state/0/" + name])) for name in ("t", "H_diag"))
        state.update((name, tensors["state/0/" + name]) for name in ("d", "prev_flat_grad"))
        for name in ("old_dirs", "old_stps"):
            state[name] = [tensors[f"state/0/{name}/{i}"] for i in pairs]
        state["ro"] = [float(texts[f"state/0/ro/{i}"]) for i in pairs]
        self.state[self.param_groups[0]["params"][0]] = state

    def _push(self):
        state = self.state.get(self.param_groups[0]["params"][0])
        if not state:
            self._made = None
            return
        tensors, texts = _C.lbfgs_state(self._object())
        for name in self._whole:
            texts["state/0/" + name] = str(int(state.get(name, 0)))
        old, steps, ro = (state.get(name) or [] for name in ("old_dirs", "old_stps", "ro"))
        texts["state/0/pairs"] = str(len(old))
        for name, usual in (("t", 1.0), ("H_diag", 1.0)):
            value = state.get(name)
            texts["state/0/" + name] = repr(float(usual if value is None else value))
        for name in ("d", "prev_flat_grad"):
            if state.get(name) is not None:
                tensors["state/0/" + name] = state[name]
        for i, (y, s, r) in enumerate(zip(old, steps, ro)):
            tensors[f"state/0/old_dirs/{i}"], tensors[f"state/0/old_stps/{i}"] = y, s
            texts[f"state/0/ro/{i}"] = repr(float(r))
        _C.lbfgs_load(self._object(), tensors, texts)

    def state_dict(self):
        self._pull()
        return super().state_dict()

    def load_state_dict(self, state_dict):
        super().load_state_dict(state_dict)
        self._push()
