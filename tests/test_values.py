"""Values (regression): against formulas written with numpy, in every format, and through whole runs."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from helpers import random_weights, sequences, whole
from page_tree import data_of_runs
from perdure.analysis.states import hidden_states
from perdure.benchmarks.arrays import Arrays, save_tasks, tasks_from
from perdure.benchmarks.task import check_tasks
from perdure.cli import main
from perdure.config import build
from perdure.errors import Interrupted, PerdureError
from perdure.experiment import run
from perdure.learning.engine import RunOptions
from perdure.learning.evaluate import Score, evaluate, mean_score
from perdure.networks.batch import Data
from perdure.networks.bodies.recurrent import Recurrent
from perdure.networks.network import Network
from perdure.networks.targets import draw
from perdure.randomness import generator
from perdure.storage.store import to_record
from perdure.targets.value import Value
from report_samples import record
from test_arrays import FORMATS, _signals_as_before, example, read, write_csv  # noqa: F401

VALUES = {
    "train": [1.5, 20.0, -3.0, 4.25, 12.0, 7.0, 0.5, 9.0, 30.0, 2.0],
    "val": [2.5, 11.0],
    "test": [14.0, -6.5, 3.0],
}


# Likelihood, score and metric


def r_squared(z, y):
    """Of all outputs together, each about its own mean; NaN is not asked."""
    asked = ~np.isnan(y)
    wrong = ((z - y)[asked] ** 2).sum()
    varied = sum(((c - np.nanmean(c)) ** 2)[~np.isnan(c)].sum() for c in y.T if not np.isnan(c).all())
    return 1 - wrong / varied


@settings(max_examples=60, deadline=None)
@given(
    shape=st.tuples(st.integers(3, 30), st.integers(1, 4)),
    closeness=st.sampled_from([0.0, 0.3, 0.9]),
    cuts=st.lists(st.integers(1, 29), max_size=3),
    seed=st.integers(0, 99),
)
def test_r_squared_and_error_equal_numpy_however_batches_are_cut(shape, closeness, cuts, seed):
    source = np.random.default_rng(seed)
    y = source.normal(size=shape) + 3
    z = closeness * y + (1 - closeness) * (source.normal(size=shape) + 3)
    y[source.random(shape) < 0.2] = np.nan
    y[0], y[1] = 1.0, 2.0  # something varies
    target = Value((5.0,) * shape[1], tuple(np.linspace(0.5, 2, shape[1])))
    total = 0
    for rows in np.split(np.arange(len(y)), sorted({cut for cut in cuts if cut < len(y)})):
        part = torch.tensor(y[rows])
        mask = target.asked(part)
        total = total + target.tally(torch.tensor(z[rows]), target.targets(part, mask, part.dtype), mask)
    judged = target.judge(total)
    assert judged.accuracy == pytest.approx(100 * max(r_squared(z, y), 0), abs=1e-8)
    error = ((z - y) / np.array(target.factor))[~np.isnan(y)]
    assert judged.error == pytest.approx(np.sqrt((error**2).mean()), rel=1e-10)
    assert judged.asked == (~np.isnan(y)).sum()
    assert judged.f1 is None


def test_what_is_worse_than_the_mean_counts_as_nothing_and_constants_are_all_or_nothing():
    y = torch.tensor([[1.0], [2.0], [3.0]])
    far = Value().judge(Value().tally(y + 100, y, None))
    assert (far.accuracy, far.error) == (0, 100)
    mean = Value().judge(Value().tally(torch.full((3, 1), 2.0), y, None))
    assert mean.accuracy == pytest.approx(0)
    same = torch.ones(3, 1)
    assert Value().judge(Value().tally(same, same, None)).accuracy == 100
    assert Value().judge(Value().tally(same + 1, same, None)).accuracy == 0


def test_score_is_the_gradient_of_the_loss():
    batch = whole(sequences(Value(), 7, 4, 3, 3, ragged=True))
    assert batch.mask is not None
    assert not batch.mask.all()
    logits = torch.randn(7, 3, dtype=torch.float64, generator=generator(0, "logits")).requires_grad_()
    loss = Value().negative_log_likelihood(logits, batch.targets, batch.mask)
    (gradient,) = torch.autograd.grad(loss, logits)
    score = Value().score(logits.detach(), batch.targets, batch.mask)
    torch.testing.assert_close(gradient, score, rtol=1e-12, atol=0)


def test_drawn_values_have_the_prediction_as_mean_and_variance_one():
    batch = whole(sequences(Value(), 4, 3, 2, 2, ragged=False))
    logits = torch.tensor([[0.0, 5.0], [1.0, -2.0], [3.0, 0.0], [7.0, 1.0]], dtype=torch.float64)
    chance = generator(0, "draw")
    drawn = torch.stack([draw(logits, batch, chance) for _ in range(4000)])
    assert_allclose(drawn.mean(0), logits, atol=0.08)
    assert_allclose(drawn.var(0), torch.ones(4, 2), atol=0.1)


def test_early_stopping_sees_progress_where_the_score_is_still_zero():
    worse, better = Score(0.0, 9.0, error=4.0), Score(0.0, 7.0, error=3.5)
    assert better.improves(worse)
    assert not worse.improves(better)
    assert not Score(50.0, 1.0, 50.0).improves(Score(50.0, 2.0, 50.0))  # classes: by accuracy alone
    assert mean_score([worse, better]) == Score(0.0, 8.0, None, 3.75)
    assert mean_score([Score(50.0, 1.0, 40.0), Score(70.0, 2.0, 60.0)]) == Score(60.0, 1.5, 50.0, None)


def test_evaluation_masks_what_is_not_known():
    network = Network(Recurrent(cell="gru", hidden=(4,)), 3, (2,))
    data = sequences(Value(), 40, 5, 3, 2, ragged=True)
    weights = random_weights(network)
    score = evaluate(network, weights, Data(data, dtype=torch.float64), 0)
    logits = network(weights, whole(data), 0).numpy()
    wrong = (logits - data.y)[~np.isnan(data.y)]
    assert score.loss == pytest.approx((wrong**2).sum() / 2 / 40, rel=1e-10)
    assert score.error == pytest.approx(np.sqrt((wrong**2).mean()), rel=1e-10)
    assert score.accuracy == pytest.approx(100 * max(r_squared(logits, data.y), 0), abs=1e-8)


def test_answers_are_at_the_last_valid_step():
    network = Network(Recurrent(hidden=(4,)), 2, (3,))
    data = sequences(Value(), 9, 6, 2, 3, ragged=True)
    states = hidden_states(network, random_weights(network), data)
    assert states.answers.tolist() == [1] * 9
    assert torch.equal(states.during("output"), states.during("last"))
    with pytest.raises(PerdureError, match="targets of kind 'value'"):
        states.during("stop")


# Data of one's own


@pytest.mark.parametrize("form", FORMATS)
def test_every_format_gives_the_values_that_were_written(form, tmp_path):
    examples = {"task 2": example(1, labels=VALUES), "task 10": example(2, labels=VALUES)}
    tasks = read(form, tmp_path, examples)
    check_tasks(tasks)
    for task in tasks:
        assert (task.target.name, task.outputs, task.inputs) == ("value", 1, 2)
        assert task.target.offset == pytest.approx((np.mean(VALUES["train"]),))
        assert task.target.factor == pytest.approx((1 / np.std(VALUES["train"]),))
        assert abs(task.train.y.mean()) < 1e-6
        assert task.train.y.std() == pytest.approx(1, abs=1e-6)
        for split, (x, y) in examples[task.name].items():
            data = getattr(task, split)
            assert data.y.dtype == np.float32
            assert data.lengths.tolist() == [len(one) for one in x]
            assert_allclose(task.target.in_own_units(data.y)[:, 0], y, rtol=1e-5, atol=1e-5)


def many(seed, outputs=2):
    source = np.random.default_rng(seed)
    y = source.normal(size=(30, outputs)) * [1, 50][:outputs] + 7
    return source.random((30, 4, 3)), y


def test_several_outputs_some_of_them_not_asked(tmp_path):
    x, y = many(0)
    y[::7, 1] = np.nan
    (task,) = tasks_from([(x, y)])
    known = np.concatenate([np.isnan(getattr(task, s).y).sum(0) for s in ("train", "val", "test")]).sum()
    assert known == np.isnan(y).sum()
    assert_allclose(np.nanstd(task.train.y, axis=0), [1, 1], rtol=1e-5)
    assert Data(task.train).batch(slice(None)).mask is not None
    assert not Data(task.train).complete
    (listed,) = tasks_from([(list(x), list(y))])
    assert np.array_equal(listed.train.y, task.train.y, equal_nan=True)
    again = Arrays(folder=str(save_tasks([task], tmp_path / "kept"))).build()[0]
    assert_allclose(again.test.y, task.test.y, rtol=1e-5, atol=1e-6)
    assert again.target.factor == pytest.approx(task.target.factor, rel=1e-5)


def test_own_outputs_have_their_own_scale_and_shared_ones_that_of_the_first_task():
    (x, y), (x2, y2) = many(0), many(1)
    own = tasks_from([(x, y), (x2, 100 * y2)])
    assert all(task.train.y.std(0) == pytest.approx([1, 1], rel=1e-5) for task in own)
    shared = tasks_from([(x, y), (x2, 100 * y2)], labels="shared")
    assert shared[0].target == shared[1].target == own[0].target
    assert shared[1].train.y.std() > 30
    with pytest.raises(PerdureError, match="'task 2' has 1 values per sequence, but 'task 1' has 2"):
        tasks_from([(x, y), (x2, y2[:, :1])], labels="shared")


def test_whole_numbers_are_classes_unless_it_is_said(tmp_path):
    counts = {split: [round(value) for value in values] for split, values in VALUES.items()}
    for form in ("csv", "npz", "lists"):
        folder = tmp_path / form
        folder.mkdir()
        (task,) = read(form, folder, {"one": example(0, labels=counts)}, kind="value")
        assert_allclose(task.target.in_own_units(task.train.y)[:, 0], counts["train"], atol=1e-5)
    x, y = many(0, 1)
    with pytest.raises(PerdureError, match=r"all its numbers are whole; use y.astype\(int\)"):
        tasks_from([(x, np.round(y[:, 0]))])
    certain = tasks_from([(x, np.round(y[:, 0])), (x, y[:, 0])])  # the second decides for the first
    assert {task.target.name for task in certain} == {"value"}
    with pytest.raises(PerdureError, match=r"of kind label, but .* of kind value"):
        tasks_from([(x, np.arange(30) % 2), (x, y[:, 0])])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ((np.zeros((9, 3, 1)), np.full(9, np.inf)), r"y \[0\] is infinite"),
        ((np.zeros((9, 3, 1)), np.full(9, 0.5)), "only the value 0.5 for output 0"),
        ((np.zeros((9, 3, 1)), np.full((9, 2), [0.5, np.nan])), "output"),
        ((np.zeros((9, 3, 1)), np.random.default_rng(0).random((9, 3))), "has a number for each step of x"),
        ((np.zeros((9, 3, 1)), np.zeros((9, 2, 2))), r"they must be \[9\] or \[9, outputs\]"),
        (([np.zeros((2, 1)), np.zeros((3, 1))], [np.ones(2) / 2, np.ones(3) / 2]), r"they must be \[2\]"),
        (([np.zeros((2, 1)), np.zeros((3, 1))], [np.ones(4) / 2, np.ones(3) / 2]), "differ in shape"),
    ],
)
def test_values_that_cannot_be_used_get_a_sentence(given, message):
    with pytest.raises(PerdureError, match=message) as caught:
        tasks_from([given])
    assert "\n" not in str(caught.value)


def test_outputs_as_many_as_steps_need_a_word():
    y = np.random.default_rng(0).random((12, 3))
    (task,) = tasks_from([(np.random.default_rng(1).random((12, 3, 1)), y)], kind="value")
    assert task.outputs == 3


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("4.25", "many", r"row \d+: the label 'many' is not a finite number"),
        ("4.25", "", r"row \d+: the sequence has no value"),
        ("4.25", "nan", "not a finite number"),
    ],
)
def test_a_label_that_is_no_number_is_named(old, new, message, tmp_path):
    write_csv(tmp_path / "one.csv", example(0, labels=VALUES))
    path = tmp_path / "one.csv"
    path.write_text(path.read_text().replace(f",{old}\n", f",{new}\n").replace(f",{old}\r\n", f",{new}\r\n"))
    with pytest.raises(PerdureError, match=message):
        Arrays(folder=str(tmp_path), kind="value").build()


def test_values_that_change_within_a_sequence_are_refused(tmp_path):
    (tmp_path / "one.csv").write_text(
        "sequence,x,label\n" + "".join(f"s{n // 3},{n},{n / 7}\n" for n in range(60))
    )
    with pytest.raises(PerdureError, match="values are predicted at the last step only"):
        Arrays(folder=str(tmp_path)).build()


def test_check_tells_the_range_in_the_users_units(tmp_path, capsys):
    write_csv(tmp_path / "one.csv", example(0, labels=VALUES))
    assert main(["data", "check", str(tmp_path), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["kind"] == "value"
    held = found["tasks"][0]["values"]["0"]
    assert held == pytest.approx(
        {"least": -3.0, "mean": np.mean(VALUES["train"]), "greatest": 30.0}, rel=1e-5
    )
    assert main(["data", "check", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert "Targets: value; 2 features" in said
    assert "least -3, mean 8.325" in " ".join(said.split())


# Whole runs


def csv_folder(folder):
    """Two tasks: the sum over the steps of one feature or the other, in units far from 1."""
    folder.mkdir()
    for task in range(2):
        source = np.random.default_rng(task)
        rows = ["sequence,p,q,label"]
        for n in range(200):
            steps = source.normal(size=(source.integers(2, 6), 2)).round(4)
            value = round(300 + 40 * float(steps[:, task].sum()), 4)
            rows += [f"s{n},{p},{q},{value}" for p, q in steps]
        (folder / f"task{task}.csv").write_text("\n".join(rows) + "\n")
    return folder


SMALL = {
    "online-ewc": ["--penalties.online-ewc.estimator", "exact"],
    "masking+si": ["--weights.fraction", "0.3"],
    "hnet": ["--weights.hidden", "20", "--weights.chunk", "300"],
    "coresets": [],
    "hnet+r": ["--rehearsal.reconstruction", "0.1", "--rehearsal.hidden", "8"],
}


def run_words(method):
    words = ["run", "arrays", method, "--benchmark.folder", "mine", "--scale", "smoke"]
    words += ["--network.hidden", "16", "--training.iterations", "160", "--training.learning_rate", "0.02"]
    return [*words, *SMALL[method]]


@pytest.mark.parametrize("method", SMALL)
def test_methods_learn_values_from_csv_files(method, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    csv_folder(tmp_path / "mine")
    assert main([*run_words(method), "--json"]) == 0
    record = to_record(json.loads(capsys.readouterr().out))
    assert (record.score, record.f1) == ("R²", [])
    assert record.accuracy[0][0] > 75
    assert record.accuracy[1][1] > 75
    # Units of the data: R^2 = 1 - (error / deviation)^2, and the deviation is about 40 sqrt(3.5).
    for percent, error in zip(np.diag(record.accuracy), np.diag(record.error), strict=True):
        assert error == pytest.approx(np.sqrt(1 - percent / 100) * 75, rel=0.4)


def config_of(folder, method, **values):
    small = {"network.hidden": 8, "training.iterations": 60, "training.patience": 4}
    return build("arrays", method, scale="smoke", **(small | {"benchmark.folder": str(folder)} | values))


@pytest.mark.parametrize("method", ["online-ewc", "coresets"])
def test_a_stopped_run_of_values_ends_like_one_that_was_not(method, tmp_path):
    config = config_of(csv_folder(tmp_path / "mine"), method)
    whole_run = run(config, tmp_path / "whole").record
    stops = iter([False] * 45 + [True])
    with pytest.raises(Interrupted):
        run(config, tmp_path / "stopped", RunOptions(stop=lambda: next(stops)))
    resumed = run(config, tmp_path / "stopped").record
    assert (resumed.accuracy, resumed.error) == (whole_run.accuracy, whole_run.error)
    assert resumed.curves == whole_run.curves


def test_without_strength_ewc_of_values_is_fine_tuning(tmp_path):
    folder = csv_folder(tmp_path / "mine")
    plain = run(config_of(folder, "fine-tuning"), tmp_path / "runs").record
    free = run(
        config_of(folder, "online-ewc", **{"penalties.online-ewc.strength": 0.0}), tmp_path / "runs"
    ).record
    assert (free.accuracy, free.error) == (plain.accuracy, plain.error)
    assert free.error[1][0] > 2 * free.error[0][0]  # and it forgets


def test_tables_figures_analyses_and_report_say_what_the_percentages_are(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    csv_folder(tmp_path / "mine")
    assert main([*run_words("online-ewc"), "--plot", "figure.svg"]) == 0
    out, err = capsys.readouterr()
    assert "test R² in percent" in out
    assert "test error (root mean square" in out
    assert "test R²" in err
    run = next((tmp_path / "runs").glob("*/record.json")).parent.name
    assert main(["show"]) == 0
    assert "R²" in capsys.readouterr().out
    assert main(["show", run]) == 0
    assert "% R²" in capsys.readouterr().out
    for words in (["forgetting"], ["steps"], ["supervised", "--columns", "2", "--iterations", "3"]):
        assert main(["analyse", words[0], run, *words[1:]]) == 0
        assert "test R² in percent" in capsys.readouterr().out
    assert main(["report", "--out", "report.html"]) == 0
    page = (tmp_path / "report.html").read_text()
    assert "The numbers are R² on the test sets" in page
    [shown] = data_of_runs(page).values()
    assert shown["score"] == "R²"
    assert len(shown["error"]) == 2
    assert (tmp_path / "figure.svg").stat().st_size > 1000


def test_records_from_before_there_were_values_are_read():
    """They lack the name of the score and the errors, and are accuracies."""
    data = {
        name: value for name, value in record("si", 0).json.items() if name not in ("score", "error", "f1")
    }
    assert (to_record(data).score, to_record(data).error) == ("accuracy", [])
