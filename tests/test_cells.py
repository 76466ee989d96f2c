"""Every cell is its equation: states, gradients and Fisher in double precision, against plain loops."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
import torch

import perdure
from helpers import CELLS, STEPS, random_weights, sequences, whole
from perdure.networks.bodies.recurrent import Recurrent
from perdure.networks.cells.cell import LayerInput
from perdure.networks.cells.diagonal import Diagonal
from perdure.networks.cells.lstm import LSTM
from perdure.networks.fisher import fisher
from perdure.networks.network import Network
from perdure.networks.packing import pack_lengths
from perdure.networks.tape import Tape, TaskVector
from perdure.registry import chosen, pieces
from perdure.targets.bits import Bits
from perdure.targets.label import Label
from perdure.targets.tags import Tags
from test_fisher import brute_force

UNITS, INPUTS = 4, 3


def elman(w, x, h):
    """h_t = tanh(W_ih x_t + b_ih + W_hh h_{t-1} + b_hh)."""
    (h,) = h
    return ((w["weight_ih"] @ x + w["bias_ih"] + w["weight_hh"] @ h + w["bias_hh"]).tanh(),)


def lstm(w, x, state):
    """Gates i, f, g, o; c_t = f c_{t-1} + i g; h_t = o tanh(c_t)."""
    h, c = state
    i, f, g, o = (w["weight_ih"] @ x + w["bias_ih"] + w["weight_hh"] @ h + w["bias_hh"]).split(UNITS)
    c = f.sigmoid() * c + i.sigmoid() * g.tanh()
    return o.sigmoid() * c.tanh(), c


def gru(w, x, state):
    """Gates r, z, n; n = tanh(x_n + r (W_hn h + b_hn)); h_t = (1 - z) n + z h_{t-1}."""
    (h,) = state
    given = (w["weight_ih"] @ x + w["bias_ih"]).split(UNITS)
    inner = (w["weight_hh"] @ h + w["bias_hh"]).split(UNITS)
    r, z = (given[0] + inner[0]).sigmoid(), (given[1] + inner[1]).sigmoid()
    n = (given[2] + r * inner[2]).tanh()
    return ((1 - z) * n + z * h,)


def single(step):
    """A step whose state is h alone."""
    return lambda w, x, state: (step(w, x, state[0]),)


EQUATIONS = {"elman": (elman, 1), "lstm": (lstm, 2), "gru": (gru, 1)}
EQUATIONS |= {cell: (single(step), 1) for cell, step in STEPS.items()}
"""The step of each cell, for one sequence, and how many vectors its state has."""


def test_every_cell_has_its_equation_here():
    assert set(EQUATIONS) == set(CELLS)


def loop(cell, weights, x, *, reverse, added=None):
    """States [T, H] of one sequence x [T, F], one step after the other."""
    step, size = EQUATIONS[cell]
    width = UNITS * pieces("cells")[cell].numbers_per_unit
    state = tuple(torch.zeros(width, dtype=torch.float64) for _ in range(size))
    if added is not None and cell in STEPS:
        weights = weights | {"added": added}
    elif added is not None:
        weights = weights | {"bias_ih": weights["bias_ih"] + added}
    states = []
    for row in x.flip(0) if reverse else x:
        state = step(weights, row, state)
        states.append(state[0])
    return torch.stack(states[::-1] if reverse else states)


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("lengths", [[5, 5, 5], [2, 5, 1, 4], [1, 1]], ids=str)
@pytest.mark.parametrize("told", [False, True])
@pytest.mark.parametrize("taped", [False, True])
def test_states_and_gradients_are_those_of_the_equation(cell, lengths, told, taped):
    """Both directions, different lengths, with a vector that tells the task, by fused kernels or sweeps."""
    architecture = Recurrent(cell=cell, hidden=(UNITS,), bidirectional=True, task_identity=told)
    network = Network(architecture, INPUTS, (2,))
    source = torch.Generator().manual_seed(len(lengths))
    padded = torch.randn(len(lengths), 5, INPUTS, generator=source, dtype=torch.float64)
    width = 2 * UNITS * architecture.cell.numbers_per_unit
    goal = torch.randn(len(lengths), 5, width, generator=source, dtype=torch.float64)
    packing, prefixes = pack_lengths(torch.tensor(lengths)), architecture.prefixes(0)
    names = [f"identity.0.{prefix.rstrip('.')}" for prefix in prefixes]
    results = []
    for ours in (True, False):
        # With a tape weights must not need gradients; what remains is the gradient of the inputs.
        leaves = {n: w.requires_grad_(not taped) for n, w in random_weights(network).items()}
        x = padded.clone().requires_grad_()
        if ours:
            vectors = tuple(TaskVector((name,), None) if told else None for name in names)
            given = LayerInput(packing.pack(x), packing, vectors, Tape() if taped else None)
            states = packing.unpack(architecture.cell.run(leaves, prefixes, given))
        else:
            rows = []
            for n, length in enumerate(lengths):
                ways = [
                    loop(
                        cell,
                        {m.removeprefix(prefix): w for m, w in leaves.items() if m.startswith(prefix)},
                        x[n, :length],
                        reverse=bool(way),
                        added=leaves[names[way]] if told else None,
                    )
                    for way, prefix in enumerate(prefixes)
                ]
                rows.append(torch.nn.functional.pad(torch.cat(ways, dim=1), (0, 0, 0, max(lengths) - length)))
            states = torch.stack(rows)
        (states * goal[:, : states.shape[1]]).sum().backward()
        slopes = {n: leaf.grad for n, leaf in (leaves | {"x": x}).items() if leaf.grad is not None}
        results.append((states.detach(), slopes))
    (states, slopes), (expected, its_slopes) = results
    torch.testing.assert_close(states, expected, rtol=1e-10, atol=1e-12)
    assert slopes.keys() == its_slopes.keys()
    trained = {prefix + "weight_ih" for prefix in prefixes} | ({*names} if told else set())
    assert {"x", *(() if taped else trained)} <= slopes.keys()
    for name, slope in its_slopes.items():
        torch.testing.assert_close(slopes[name], slope, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("kind", [Tags(), Label(), Bits()], ids=lambda kind: kind.name)
@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("estimator", ["empirical", "exact"])
def test_the_fisher_is_that_of_a_loop_over_samples(cell, kind, bidirectional, estimator):
    """Different lengths, two layers, the task told; samples of one step too."""
    choices = {"hidden": (3, 2), "bidirectional": bidirectional, "task_identity": True}
    network = Network(Recurrent(cell=cell, **choices), 2, (2, 2))
    data = sequences(kind, 4, 3, 2, 2, ragged=True, seed=3)
    weights = random_weights(network)
    ours = fisher(network, weights, data, task=1, estimator=estimator)
    for name, value in brute_force(network, weights, data, 1, estimator).items():
        torch.testing.assert_close(ours[name], value, rtol=1e-10, atol=1e-14)
    assert ours["identity.1.recurrent.0"].any()
    assert not ours["identity.0.recurrent.0"].any()


@pytest.mark.parametrize("ragged", [False, True])
@pytest.mark.parametrize("bidirectional", [False, True])
def test_the_forget_offset_is_a_bias(ragged, bidirectional):
    """By the fused kernel, by our sweeps, with a tape, and in the Fisher."""
    shifted, plain = (
        Network(Recurrent(cell=LSTM(forget_offset=o), hidden=(UNITS,), bidirectional=bidirectional), 3, (2,))
        for o in (1.5, 0.0)
    )
    weights = random_weights(plain)
    more = {name: weight.clone() for name, weight in weights.items()}
    for prefix in plain.architecture.prefixes(0):
        more[prefix + "bias_ih"][UNITS : 2 * UNITS] += 1.5  # gates i, f, g, o
    data = sequences(Tags(), 6, 5, 3, 2, ragged=ragged)
    batch = whole(data)
    for tape in (False, True):
        ours, expected = (
            network(values, batch, 0, Tape() if tape else None)
            for network, values in ((shifted, weights), (plain, more))
        )
        torch.testing.assert_close(ours, expected, rtol=1e-12, atol=1e-14)
        assert (ours - plain(weights, batch, 0)).abs().max() > 1e-3
    for name, value in fisher(plain, more, data).items():
        torch.testing.assert_close(fisher(shifted, weights, data)[name], value, rtol=1e-10, atol=1e-14)


def test_the_memory_of_a_diagonal_cell_is_its_factor():
    for memory in (0.2, 0.9, 0.999):
        kept = Diagonal(memory=memory).kept(torch.zeros(1, dtype=torch.float64))
        assert float(kept) == pytest.approx(memory, rel=1e-12)


def test_a_diagonal_cell_keeps_the_variance_of_white_noise():
    """h_t of white noise has the noise's variance, whatever the factor: that is what the root is for."""
    source = torch.Generator().manual_seed(0)
    cell, noise = chosen("cells", "diagonal"), torch.randn(4000, 1, generator=source, dtype=torch.float64)
    for decay in (-2.0, 0.0, 2.0):
        weights = {
            "weight_ih": torch.ones(1, 1, dtype=torch.float64),
            "bias_ih": torch.zeros(1, dtype=torch.float64),
            "decay_hh": torch.tensor([decay], dtype=torch.float64),
        }
        packing = pack_lengths(torch.tensor([4000]))
        states = cell.sweep(weights, "", LayerInput(noise, packing, (None,), None), 0)
        assert float(states.std()) == pytest.approx(1, rel=0.25)


SOURCE = Path(perdure.__file__).parent


def literals(path: Path) -> set[str]:
    """String literals of a file, without docstrings."""
    nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    documents = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    constants = [node for node in nodes if isinstance(node, ast.Constant) and id(node) not in documents]
    return {node.value for node in constants if isinstance(node.value, str)}


def test_no_code_but_the_cells_own_names_a_cell():
    """A cell is found by its file. 'diagonal' is also another word, so it counts where it stands alone."""
    named = {}
    for path in SOURCE.rglob("*.py"):
        texts = literals(path)
        words = {word for text in texts for word in re.findall(r"[\w-]+", text)} - {"diagonal"}
        named[path.relative_to(SOURCE)] = (words | texts) & set(CELLS)
    inside = {path for path, cells in named.items() if cells}
    assert Path("networks/cells/__init__.py") in inside  # names the default, so something is found at all
    others = {Path("paper/items")}  # settings of the paper
    assert {path.parent for path in inside} <= {Path("networks/cells"), *others}
