"""The validation matrix, and that nothing which is chosen within a run depends on a test number."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
import torch

from helpers import Memory
from perdure.errors import Interrupted
from perdure.experiment import assemble, generators_of, on_device, run, run_part
from perdure.learning.engine import RunOptions, learn
from perdure.learning.splits import Splits
from perdure.storage.store import RunFolder
from perdure.testing import small


def learnt(config, change):
    """Results and the state after each phase, with splits that `change` changed."""
    tasks, learner = assemble(config)
    data = [change(splits) for splits in on_device(tasks, "cpu")]
    keeper = Memory()
    results = learn(learner, data, config.training, generators_of(config), keeper, RunOptions())
    return results, keeper.after


def as_it_is(splits: Splits) -> Splits:
    return splits


def test_the_validation_matrix_is_that_of_the_validation_data():
    """With the test data in place of the validation data both matrices are equal; else they are not."""
    config = small("fine-tuning")
    results, _ = learnt(config, lambda splits: replace(splits, val=splits.test))
    assert results.validation == results.accuracy
    results, _ = learnt(config, as_it_is)
    assert results.validation != results.accuracy
    assert [len(row) for row in results.validation] == [3, 3, 3]


@pytest.mark.parametrize("method", ["si", "coresets"])
def test_no_weight_depends_on_test_data(method):
    """Early stopping and best weights included: with other test data the same is learnt, bit for bit."""

    def spoilt(splits: Splits) -> Splits:
        test = splits.test.having(
            splits.test.x, 1 - splits.test.y, torch.full((len(splits.test),), splits.test.x.shape[1])
        )
        return replace(splits, test=test)

    config = small(method, **{"training.patience": 1, "training.iterations": 12})
    expected, states = learnt(config, as_it_is)
    results, others = learnt(config, spoilt)
    assert results.accuracy != expected.accuracy
    assert results.validation == expected.validation
    assert results.curves == expected.curves
    assert results.iterations == expected.iterations
    assert min(results.iterations) < 12, "no task stopped early"
    for state, other in zip(states, others, strict=True):
        assert state.keys() == other.keys()
        for name, value in state.items():
            assert torch.equal(value, other[name]), name


def test_records_have_it_and_older_ones_are_read(tmp_path):
    config = small("fine-tuning")
    record = run(config, tmp_path).record
    rows = record.validation
    assert record.val_during == pytest.approx(sum(rows[k][k] for k in range(3)) / 3)
    assert record.val_final == pytest.approx(sum(rows[-1]) / 3)
    path = tmp_path / config.hash / "record.json"
    data = json.loads(path.read_text())
    for name in ("validation", "searches"):
        del data[name]
    path.write_text(json.dumps(data))
    older = RunFolder(tmp_path, config.hash).record()
    assert older is not None
    assert older.validation == []
    assert older.val_final is None
    assert older.val_during is None
    assert older.final == record.final


def test_joint_training_repeats_its_row(tmp_path):
    record = run(small("multitask"), tmp_path).record
    assert len(record.validation) == 3
    assert record.val_during == record.val_final


def test_a_run_in_parts_is_the_whole_run(tmp_path):
    """Parts leave no record and no kept states; the rest goes on from them, bit for bit."""
    config = small("online-ewc")
    whole = run(config, tmp_path / "whole").record
    runs = tmp_path / "parts"
    quick = RunOptions(keep=False)
    for phases in (1, 2, 2):
        assert run_part(config, phases, runs, quick) == whole.validation[:phases]
        assert not (runs / config.hash / "record.json").exists()
    ours = run(config, runs, quick)
    assert (ours.record.accuracy, ours.record.validation) == (whole.accuracy, whole.validation)
    assert not list(ours.folder.glob("after-*"))
    assert run_part(config, 2, runs) == whole.validation[:2]


def test_a_part_that_is_stopped_goes_on(tmp_path):
    config = small("fine-tuning")
    calls = 0

    def stop() -> bool:
        nonlocal calls
        calls += 1
        return calls == 8

    with pytest.raises(Interrupted):
        run_part(config, 2, tmp_path, RunOptions(stop=stop))
    assert run_part(config, 2, tmp_path) == run(config, tmp_path / "whole").record.validation[:2]
