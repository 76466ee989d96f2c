"""Supervised reduction on a network whose needed subspace is known, and every analysis on finished runs."""

from __future__ import annotations

import json
import math
import subprocess
import sys

import numpy as np
import pytest
import torch
from matplotlib.figure import Figure
from torch.nn import functional

from helpers import CELLS, random_weights
from perdure.analysis.catalogue import ANALYSES, find_analysis
from perdure.analysis.opened import OpenedRun
from perdure.analysis.subspaces import principal_angles
from perdure.analysis.supervised import Fitting, ServedTask, reduce_states
from perdure.benchmarks.task import Sequences
from perdure.config import build
from perdure.errors import PerdureError
from perdure.experiment import run
from perdure.learning.evaluate import evaluate
from perdure.networks.batch import Data
from perdure.networks.bodies.recurrent import Recurrent
from perdure.networks.fisher import fisher
from perdure.networks.network import Network
from perdure.networks.targets import negative_log_likelihood
from perdure.randomness import generator
from perdure.storage.store import RunFolder
from perdure.targets.bits import Bits
from perdure.targets.tags import Tags
from test_learning import SMALL

UNITS, STEPS = 6, 4


def constructed(ragged):
    """An Elman network with six units that asks for two directions of its hidden space, and no others.

    All inputs come at the first step and are kept (W_hh ~ I, small states); the readout, and so the targets,
    look at two random directions V alone. The last step is answered; the one before it is the stop bit.
    """
    source = np.random.default_rng(0)
    directions = np.linalg.qr(source.normal(size=(UNITS, 2)))[0]
    network = Network(Recurrent(hidden=(UNITS,)), UNITS, (2,))
    eye, zero = torch.eye(UNITS), torch.zeros(UNITS)
    weights = {
        "recurrent.0.weight_ih": 0.3 * eye,
        "recurrent.0.bias_ih": zero,
        "recurrent.0.weight_hh": eye.clone(),
        "recurrent.0.bias_hh": zero,
        "recurrent.0.weight_ho": torch.tensor(directions @ directions.T, dtype=torch.float32),
        "recurrent.0.bias_ho": zero,
        "head.0.weight": 4 * torch.tensor(directions.T, dtype=torch.float32),
        "head.0.bias": torch.zeros(2),
    }
    splits = []
    for count in (600, 400):
        x = np.zeros((count, STEPS, UNITS), dtype=np.float32)
        x[:, 0] = source.normal(size=(count, UNITS))
        lengths = source.integers(2, STEPS + 1, count) if ragged else np.full(count, STEPS)
        data = Data(Sequences(Bits(), x, np.zeros((count, 1, 2), dtype=np.int8), lengths))
        asked = (network(weights, data.batch(slice(None)), 0) >= 0).to(torch.int8)[:, None]
        splits.append(data.having(data.x, asked, torch.tensor(lengths)))
    return ServedTask(network, weights, 0, *splits), torch.tensor(directions.T)


def projected_loss(part, basis, place):
    """Loss per test sample with projected states, step by step and sequence by sequence."""
    weights, data, total = part.weights, part.test, 0.0
    lengths = [STEPS] * len(data) if data.lengths is None else data.lengths.tolist()
    projection = torch.eye(UNITS) if basis is None else basis @ basis.T
    for x, y, length in zip(data.x, data.y, lengths, strict=True):
        h = torch.zeros(UNITS)
        for step in range(length):
            h = (weights["recurrent.0.weight_ih"] @ x[step] + weights["recurrent.0.weight_hh"] @ h).tanh()
            if place == "all" and step == length - 1:
                h = projection @ h
            if place == "stop" and step == length - 2:
                h = projection @ h
        out = weights["head.0.weight"] @ (weights["recurrent.0.weight_ho"] @ h).tanh()
        total += float(functional.binary_cross_entropy_with_logits(out, y[0].float(), reduction="sum"))
    return total / len(data)


@pytest.mark.parametrize("place", ["all", "stop"])
@pytest.mark.parametrize("ragged", [False, True])
def test_supervised_reduction_finds_the_needed_subspace(place, ragged):
    part, needed = constructed(ragged)
    found = reduce_states([part], UNITS, generator(0), Fitting(columns=3, place=place))
    assert found.whole == 100
    assert found.accuracy[0] < 90  # one direction cannot tell two bits
    assert min(found.accuracy[1:]) > 95
    assert found.needed(0.95) == 2
    assert principal_angles(found.basis[:, :2].T, needed)[-1] < 12
    torch.testing.assert_close(found.basis.T @ found.basis, torch.eye(3), atol=0.05, rtol=0)
    for count in (1, 2, 3):
        loss = projected_loss(part, found.basis[:, :count], place)
        assert found.loss[count - 1] == pytest.approx(loss, rel=1e-4)


@pytest.mark.parametrize("cell", CELLS)
def test_all_columns_are_the_network_itself(cell):
    """With a complete orthonormal basis nothing is lost; tags, ragged, both directions, sub-networks."""
    network = Network(Recurrent(cell=cell, hidden=(3,), bidirectional=True), 2, (2, 2))
    source, weights = np.random.default_rng(0), random_weights(network, dtype=torch.float32)
    lengths = source.integers(1, 6, 50)
    y = source.integers(0, 2, (50, 5))
    y[np.arange(5) >= lengths[:, None]] = -1
    data = Data(Sequences(Tags(), source.normal(size=(50, 5, 2)).astype(np.float32), y, lengths))
    size = 6 * network.architecture.numbers_per_unit + 2  # of a network of which this is a part
    units = torch.tensor([unit for unit in range(size) if unit not in (1, 4)])
    part = ServedTask(network, weights, 1, data, data, units)
    found = reduce_states([part], size, generator(0), Fitting(iterations=0))
    exact = evaluate(network, weights, data, 1)
    assert found.basis.shape == (size, size)
    assert found.whole == found.accuracy[-1] == pytest.approx(exact.accuracy)
    assert found.loss[-1] == pytest.approx(exact.loss, rel=1e-5)
    with pytest.raises(PerdureError, match="stop bit"):
        reduce_states([part], size, generator(0), Fitting(place="stop"))


# Finished runs

CASES = {
    "online-ewc": {},
    "si": {},
    "masking": {"network.hidden": 20, "weights.fraction": 0.5},
    "hnet": {"weights.hidden": "8", "weights.chunk": 60},
    "from-scratch": {"network.cell": "lstm"},
    "multitask": {},
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """One small finished run of each case: (folder, record)."""
    place, made = tmp_path_factory.mktemp("runs"), {}
    torch.set_num_threads(1)
    for method, values in CASES.items():
        values = SMALL | {"training.iterations": 60, "training.validate_every": 20} | values
        done = run(build("permuted-copy", method, scale="smoke", seed=1, **values), place)
        made[method] = RunFolder(place, done.folder.name), done.record
    return made


def look(runs, method, name, **options):
    """The finding of an analysis, after checks that hold for all of them."""
    entry = find_analysis(name)
    folder, record = runs[method] if entry.needs_run else (None, None)
    finding = entry(folder, record, entry.read(options))
    assert all(len(row) == len(finding.columns) for row in finding.rows)
    assert json.loads(json.dumps(finding.json, allow_nan=False))["columns"] == finding.columns
    axes = Figure().subplots()
    finding.draw(axes)
    assert axes.lines or axes.images
    assert axes.get_xlabel()
    return finding


def column(finding, number):
    return [row[number] for row in finding.rows]


@pytest.mark.parametrize("method", CASES)
def test_dimensionality_per_step(runs, method):
    finding = look(runs, method, "dimensionality")
    assert column(finding, 0) == [1, 2, 3, 4, 5, 6, 7]  # i + 1 + p
    opened = OpenedRun(*runs[method])
    last = len(opened.phases) - 1
    for task in range(3):
        network, weights = opened.running(last, task)
        x = opened.data(last)[task].test.x.float()
        if network.architecture.cell.name == "elman":
            h, states = torch.zeros(len(x), network.architecture.hidden[0]), []
            for step in range(7):
                w = {name.removeprefix("recurrent.0."): value for name, value in weights.items()}
                h = (
                    x[:, step] @ w["weight_ih"].T + w["bias_ih"] + h @ w["weight_hh"].T + w["bias_hh"]
                ).tanh()
                states.append(h)
        else:
            module = torch.nn.LSTM(4, 10, batch_first=True)
            for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"):
                module.get_parameter(name + "_l0").data.copy_(weights[f"recurrent.0.{name}"])
            states = module(x)[0].detach().unbind(1)
        for step, h in enumerate(states):
            squares = np.linalg.svd((h - h.mean(0)).double().numpy(), compute_uv=False) ** 2
            reached = int(np.argmax(np.cumsum(squares) >= 0.75 * squares.sum())) + 1
            assert finding.rows[step][task + 1] == reached


def test_few_sequences_are_counted_beside_their_dimensions(runs):
    finding = look(runs, "online-ewc", "dimensionality", samples=4)
    assert finding.columns[-3:] == [f"task {task}, sequences" for task in (1, 2, 3)]
    assert column(finding, -1) == [4] * 7
    assert max(column(finding, 1)) <= 3
    assert not any("sequences" in name for name in look(runs, "online-ewc", "dimensionality").columns)


@pytest.mark.parametrize("method", ["online-ewc", "masking"])
def test_dimensionality_pooled(runs, method):
    finding = look(runs, method, "dimensionality", pooled="output", samples=None, threshold="0.9")
    separate, total, joint = column(finding, 1)[:3], finding.rows[3], finding.rows[4]
    assert (total[0], total[1], joint[0]) == ("sum", sum(separate), "joint")
    assert max(separate) <= joint[1] <= 2 * sum(separate)
    assert finding.rows[0][2] >= 90  # task 1 within its own components
    if method == "masking":
        # Half of the units belong to each task: what two tasks do not share, no component of one explains.
        opened = OpenedRun(*runs[method])
        first, second = (set(opened.units(2, task).tolist()) for task in (0, 1))
        assert len(first) == len(second) == 10
        assert first != second
        assert max(separate) <= 10
        states = opened.states(2, 1, None)
        silent = [unit for unit in range(20) if unit not in second]
        assert (states.hidden[..., silent] == 0).all()
        assert (states.hidden[..., sorted(second)].std((0, 1)) > 0).all()
    kernel = look(runs, method, "dimensionality", kernel=True, after=1)
    assert kernel.columns == ["step", "task 1"]


def test_importance_is_what_the_penalties_stored(runs):
    for method in ("online-ewc", "si"):
        finding = look(runs, method, "importance")
        for total, own in ((1, 3), (2, 4)):
            sums = np.cumsum(column(finding, own))
            np.testing.assert_allclose(sums, column(finding, total), rtol=1e-5)
        assert min(column(finding, 3)) > 0
    # Online EWC's own values are the Fisher of the weights after each phase.
    finding, opened = look(runs, "online-ewc", "importance"), OpenedRun(*runs["online-ewc"])
    for task in range(3):
        network, weights = opened.running(task, task)
        values = fisher(network, weights, opened.data(task)[task].train, task=task)
        recurrent = torch.cat([values["recurrent.0.weight_hh"].flatten(), values["recurrent.0.bias_hh"]])
        assert finding.rows[task][3] == pytest.approx(float(recurrent.double().mean()), rel=1e-4)


def test_importance_without_a_memory_is_a_fisher(runs):
    finding = look(runs, "from-scratch", "importance", samples="50")
    assert finding.columns == ["task", "recurrent", "readout"]
    assert len(finding.rows) == 3
    assert all(math.isnan(value) for value in column(finding, 2))  # an LSTM has no readout
    assert finding.json["rows"][0][2] is None
    assert not any(math.isnan(value) for value in column(look(runs, "hnet", "importance"), 2))


def test_flatness_agrees_with_the_importance_of_online_ewc(runs):
    opened = OpenedRun(*runs["online-ewc"])
    finding = look(runs, "online-ewc", "flatness", samples=None)
    memory = opened.state(2).memories["online-ewc"]
    heads = [memory[f"importance.head.{task}"].double().sum() for task in range(3)]
    body = memory["importance.body"].double()
    size = len(body) + len(memory["importance.head.0"])
    assert finding.rows[-1][2] == pytest.approx(float((body.sum() + sum(heads)) / size), rel=1e-4)
    for method in ("hnet", "from-scratch", "masking", "multitask"):
        rows = look(runs, method, "flatness", samples=60).rows
        assert [row[0] for row in rows] == [1, 2, 3]
        np.testing.assert_allclose(np.cumsum([row[1] for row in rows]), [row[2] for row in rows])
        assert min(row[1] for row in rows) > 0


def test_the_precision_of_the_laplace_approximation_equals_a_loop(runs):
    """I / sigma^2 plus the squared gradients of all samples, one backward pass each; N is all of them."""
    opened = OpenedRun(*runs["from-scratch"])
    rows = look(runs, "from-scratch", "flatness", samples=None, prior=0.5).rows
    sums = []
    for task in range(3):
        network, weights = opened.running(task, task)
        names = list(network.layout_of(task).axes)
        chosen = {name: weights[name].detach().clone().requires_grad_() for name in names}
        train = opened.data(task)[task].train
        total = 0.0
        for sample in range(len(train)):
            batch = train.batch(slice(sample, sample + 1))
            loss = negative_log_likelihood(network(weights | chosen, batch, task), batch)
            total += sum(float(g.double().square().sum()) for g in torch.autograd.grad(loss, chosen.values()))
        sums.append(total / sum(value.numel() for value in chosen.values()))
    np.testing.assert_allclose([row[3] for row in rows], [4 + one for one in sums], rtol=1e-4)
    np.testing.assert_allclose([row[4] for row in rows], 4 + np.cumsum(sums), rtol=1e-4)
    few = look(runs, "from-scratch", "flatness", samples=60, prior=0.5).rows
    count = len(opened.data(0)[0].train)
    assert few[0][3] == pytest.approx(4 + count * few[0][1])  # N_k is the task's, not the estimate's


def test_supervised_reaches_the_accuracy_of_the_run(runs):
    for method in ("online-ewc", "masking", "hnet"):
        finding = look(runs, method, "supervised", columns=None, iterations=3, samples=100)
        assert len(finding.rows) == OpenedRun(*runs[method]).width()
        assert finding.rows[-1][1] == pytest.approx(runs[method][1].final, abs=3)
    both = look(runs, "online-ewc", "supervised", columns=2, iterations=2, every=True, after=2, place="stop")
    assert both.columns == ["n", "after phase 1", "after phase 2"]
    assert len(both.rows) == 2


@pytest.mark.parametrize("method", ["online-ewc", "masking", "from-scratch"])
def test_readout_similarities(runs, method):
    table = np.array([row[1:] for row in look(runs, method, "readout").rows])
    np.testing.assert_allclose(table, table.T, atol=1e-9)
    np.testing.assert_allclose(np.diag(table), math.sqrt(3))
    assert table.max() <= math.sqrt(3) + 1e-9
    smallest, largest = (
        np.array([row[1:] for row in look(runs, method, "readout", measure=m).rows])
        for m in ("smallest-angle", "largest-angle")
    )
    assert (smallest <= largest + 1e-9).all()
    assert (3 * np.cos(np.radians(largest)) ** 2 <= table**2 + 1e-6).all()
    assert (table**2 <= 3 * np.cos(np.radians(smallest)) ** 2 + 1e-6).all()


def test_distances_of_embeddings_and_generated_weights(runs):
    opened = OpenedRun(*runs["hnet"])
    parameters = opened.state(2).parameters
    made = [opened.running(2, task)[1] for task in range(3)]
    embeddings, weights = (look(runs, "hnet", "embeddings", of=of).rows for of in ("embeddings", "weights"))
    for k in range(3):
        for n in range(3):
            gap = parameters[f"embedding.{k}"].double() - parameters[f"embedding.{n}"].double()
            assert embeddings[k][n + 1] == pytest.approx(float(gap.square().sum().sqrt()))
            names = [name for name in made[k] if not name.startswith("head.")]
            square = sum(float((made[k][m].double() - made[n][m].double()).square().sum()) for m in names)
            assert weights[k][n + 1] == pytest.approx(math.sqrt(square), abs=1e-12)
    assert weights[0][2] > 0
    with pytest.raises(PerdureError, match="no task embeddings"):
        look(runs, "si", "embeddings")


def test_theory_needs_no_run():
    finding = look({}, "", "theory", units="10", dimension="3", tasks="5")
    names = finding.columns
    for row in finding.rows:
        fact = dict(zip(names, row, strict=True))
        assert fact["units needed"] == fact["sum of p_k"] == 3 * fact["tasks"]
        assert (fact["error"] < 1e-10) == (fact["sum of p_k"] <= 10)
        assert fact["error"] >= fact["least error"]


@pytest.mark.parametrize("method", CASES)
def test_steps_and_forgetting_agree_with_the_record(runs, method):
    record = runs[method][1]
    steps = look(runs, method, "steps")
    for task in range(3):  # each step asks for as many bits, so the mean over steps is the accuracy
        assert np.mean(column(steps, task + 1)) == pytest.approx(record.accuracy[-1][task])
    kept = look(runs, method, "forgetting")
    assert [row[1:] for row in kept.rows[:3]] == record.accuracy
    lost = [record.accuracy[task][task] - record.accuracy[-1][task] for task in range(3)]
    assert kept.rows[3][1:] == pytest.approx(lost)
    curve = look(runs, method, "forgetting", over="iterations")
    points = [point for phase in record.curves for point in phase]
    assert column(curve, 2) == [point["val accuracy"] for point in points]
    assert column(curve, 0) == sorted(column(curve, 0))
    assert column(curve, 0)[-1] == sum(record.iterations)
    assert sorted(set(column(curve, 1))) == list(range(1, len(record.iterations) + 1))


def test_wrong_requests_get_a_sentence(runs):
    with pytest.raises(PerdureError, match="did you mean 'dimensionality'"):
        find_analysis("dimensionalty")
    with pytest.raises(PerdureError, match=r"dimensionality\.threshold"):
        find_analysis("dimensionality").read({"threshold": "1.5"})
    with pytest.raises(PerdureError, match=r"did you mean 'steps\.after'"):
        find_analysis("steps").read({"afer": 1})
    with pytest.raises(PerdureError, match="there is no phase 4"):
        look(runs, "si", "steps", after=4)
    with pytest.raises(PerdureError, match="layers 0 to 0"):
        look(runs, "si", "dimensionality", layer=1)
    with pytest.raises(PerdureError, match="finished run"):
        ANALYSES["steps"](None, None, ANALYSES["steps"].read({}))
    with pytest.raises(PerdureError, match="Elman"):
        look(runs, "from-scratch", "supervised", place="stop")


def test_the_catalogue_is_light():
    code = (
        "import sys; from perdure.analysis.catalogue import ANALYSES;"
        "assert all(a.about and a.options.__doc__ for a in ANALYSES.values());"
        "assert not {'torch', 'scipy', 'matplotlib'} & set(sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
    assert list(ANALYSES) == [
        *("dimensionality", "importance", "step-importance", "sensitivity", "supervised", "readout"),
        "embeddings",
        *("flatness", "theory", "rehearsed", "steps", "transfer", "plasticity", "forgetting"),
    ]
