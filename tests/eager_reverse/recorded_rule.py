"""A rule's case as a recorded program: its pull is compared with the rule's own push."""

import warnings

import numpy as np

from fwdad.eager.arguments import Arguments
from fwdad.eager.build import run_on_duals
from fwdad.eager_reverse import run_recorded
from fwdad.rules.core.containers import pick, rebuild, walk
from fwdad.tangents.chunk import Chunk
from fwdad.tangents.zero import ZERO
from fwdad.testing.structure import copied, is_leaf
from fwdad.testing.trial import make_trial


def inner(bars, dots):
    """Re<bar, dot> for each pair of lanes."""
    product = np.conj(bars.reshape(len(bars), 1, -1)) * dots.reshape(1, len(dots), -1)
    return np.sum(product.real, axis=-1)


class RecordedRule:
    """The function of a `Case`, recorded at its arguments."""

    def __init__(self, case):
        rng = np.random.default_rng(0)
        self.trial = make_trial(
            case.function, case.args, dict(case.options), (1, 2, 3), rng, case.check.get("argnums")
        )

    def patterns(self):
        """Each argument alone, and all of them."""
        paths = self.trial.paths
        return [(path,) for path in paths] + ([tuple(paths)] if len(paths) > 1 else [])

    def record(self, pattern, wanted):
        """Record the call as a function of some leaves of its arguments."""
        trial = self.trial

        def program(leaves):
            found = dict(zip(pattern, leaves, strict=True))
            primals = rebuild(tuple(trial.primals), lambda path, v: found.get(path, v))
            y = run_on_duals(trial.f, *trial.call_args(primals))
            if trial.rule is not None and trial.rule.mutates:
                args, _ = trial.call_args(primals)
                y = (y, *(args[k] for k in trial.rule.mutates))
            parts = {path: v for path, v in walk(y) if is_leaf(v)}
            return [parts[path] for path in wanted]

        # one array in two places would be one leaf
        leaves = [copied(pick(trial.primals, path)) for path in pattern]
        return run_recorded(program, Arguments((leaves,), {}, (0,)))

    def check(self, pattern, n=3, rtol=1e-11):
        """<y_bar, J x_dot> = <J' y_bar, x_dot> for n cotangents and two directions."""
        trial = self.trial
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the primal's own, which its tests look at
            trial.restore()
            pushed = trial.run_at(pattern, 0, 2)
            trial.restore()
            outcome = self.record(pattern, list(pushed))
            trial.restore()
        draw = np.random.default_rng(1)
        y_bars, left, size = [], np.zeros((n, 2)), np.zeros((n, 2))
        for dots, y in zip(pushed.values(), outcome.leaves, strict=True):
            bar = draw.uniform(-1, 1, (n, *np.shape(y)))
            dtype = np.asarray(y).dtype
            if dtype.kind == "c":
                bar = bar + 1j * draw.uniform(-1, 1, bar.shape)
            bar = bar.astype(dtype)
            y_bars.append(Chunk(bar))
            left += inner(bar, dots)
            size += inner(np.abs(bar), np.abs(dots))
        x_bars = outcome.pull(y_bars)
        right = np.zeros((n, 2))
        for path, x_bar in zip(pattern, x_bars, strict=True):
            if x_bar is not ZERO:
                x = np.asarray(pick(trial.primals, path))
                assert x_bar.shape == x.shape
                assert x_bar.dtype == x.dtype
                right += inner(x_bar.lanes, trial.seeds[path][:2])
                size += inner(np.abs(x_bar.lanes), np.abs(trial.seeds[path][:2]))
        rtol = 1e-4 if trial.single else rtol
        same_kind = np.isfinite(left) == np.isfinite(right)
        assert np.all(same_kind), (left, right)
        with np.errstate(invalid="ignore"):
            error = np.where(np.isfinite(left), np.abs(left - right), 0)
        assert np.all(error <= rtol * np.maximum(size, 1e-300)), (left, right)
        self.check_single(pattern, outcome, y_bars, x_bars)

    def check_single(self, pattern, outcome, y_bars, x_bars):
        """The second of the cotangents, alone."""
        alone = outcome.pull([bar.lanes[1] for bar in y_bars])
        for one, many in zip(alone, x_bars, strict=True):
            if many is ZERO:
                assert one is ZERO
            else:
                scale = np.max(np.abs(many.lanes), initial=1e-300)
                rtol = 1e-4 if self.trial.single else 1e-11
                np.testing.assert_allclose(one, many.lanes[1], rtol=rtol, atol=rtol * scale)
