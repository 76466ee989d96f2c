"""Runs that are killed at random moments end with the same record, bit for bit.

That every method resumes from its file at any step is a promise of methods: see test_contracts.py.
"""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from filelock import FileLock

from perdure.errors import Busy, Interrupted, PerdureError
from perdure.experiment import run
from perdure.files import Damaged, read_json, read_tensors, write, write_json, write_tensors
from perdure.learning.engine import RunOptions
from perdure.learning.optimiser import OPTIMISERS
from perdure.networks.arithmetic import DIGITS
from perdure.storage.store import RunFolder, all_records, find_run
from resuming import assert_equal, comparable, config_of

CASES = {
    "fine-tuning": {"training.patience": 3, "training.iterations": 200},
    "online-ewc": {"penalties.orthogonal.strength": 0.1, "penalties.online-ewc.samples": 50},
    "masking+si": {"training.decay": 0.1, "network.hidden": 30},
    "coresets": {"rehearsal.size": 20, "rehearsal.packed": True},
    "hnet": {
        "weights.hidden": "8,8",
        "weights.chunk": 60,
        "penalties.hnet-regulariser.sample": 1,
        "penalties.hnet-regulariser.first": 0.1,
        "penalties.hnet-regulariser.anneal": 90,
        "training.warm_up": 40,
    },
    "rtf": {"rehearsal.hidden": 10, "training.iterations": 60},
    "hnet+r": {"rehearsal.hidden": 10, "training.iterations": 60},
    "multitask": {"training.optimiser": "RMSprop", "training.learning_rate": 1e-3},
}
KILLS = 3
"""For each case: more than 20 in all."""


def child(config_json, runs):
    from perdure.config import from_json

    torch.set_num_threads(1)
    run(from_json(config_json), runs, RunOptions(save_every=0.01))


@pytest.fixture(scope="module")
def server():
    """Processes that start at once because torch is loaded before they fork."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["perdure.experiment", "torch._dynamo"])  # which optimisers load
    return context


@pytest.mark.parametrize("method", CASES)
def test_killed_runs_equal_uninterrupted_ones(method, tmp_path, server):
    config = config_of(method, **CASES[method])
    whole = run(config, tmp_path / "whole", RunOptions(save_every=1e9))
    runs, chance, kills = tmp_path / "killed", random.Random(method), 0
    length = max(whole.record.seconds, 0.3)
    while kills < KILLS:
        process = server.Process(target=child, args=(config.json, str(runs)))
        process.start()
        time.sleep(0.05 + chance.random() * length)
        if process.is_alive():
            os.kill(process.pid, signal.SIGKILL)
            kills += 1
        process.join()
        if (runs / config.hash / "record.json").exists():  # too fast: begin again, kills go on counting
            finished = comparable(runs / config.hash)
            assert finished[0] == comparable(whole.folder)[0]
            for path in (runs / config.hash).iterdir():
                path.unlink()
    done = run(config, runs, RunOptions())
    assert_equal(done.folder, whole.folder)
    left = {path.name for path in done.folder.iterdir()}
    assert left == {"config.json", "record.json", ".lock", *comparable(whole.folder)[1]}


INSTRUCTIONS = {
    "SSE4.2": ("DEFAULT", "default", "SSE4_2", "SSE41"),
    "AVX": ("DEFAULT", "default", "AVX", "AVX"),
    "AVX2": ("AVX2", "avx2", "AVX2", "AVX2"),
}
"""For each instruction set what torch then reports, and the words of ATen, MKL and oneDNN for it.

MKL listens on Intel's CPUs only.
"""


@pytest.mark.parametrize("instructions", INSTRUCTIONS)
def test_runs_resume_with_other_instructions_than_the_machines_own(instructions):
    reported, *words = INSTRUCTIONS[instructions]
    own = torch.backends.cpu.get_cpu_capability()
    if own not in ("DEFAULT", "AVX2", "AVX512") or (own, reported) == ("DEFAULT", "AVX2"):
        pytest.skip(f"This machine has no {instructions} instructions")
    names = ("ATEN_CPU_CAPABILITY", "MKL_ENABLE_INSTRUCTIONS", "ONEDNN_MAX_CPU_ISA")
    command = [sys.executable, str(Path(__file__).with_name("resuming.py")), reported]
    environment = os.environ | dict(zip(names, words, strict=True))
    child = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert child.returncode == 0, child.stdout + child.stderr


@pytest.mark.parametrize("optimiser", OPTIMISERS)
def test_every_optimiser_resumes(optimiser, tmp_path):
    values = {"training.optimiser": optimiser, "training.iterations": 6, "training.learning_rate": 1e-3}
    config = config_of("fine-tuning", **values)
    whole = run(config, tmp_path / "whole")
    with pytest.raises(Interrupted):
        run(config, tmp_path / "stopped", RunOptions(stop=lambda: True))
    done = run(config, tmp_path / "stopped")
    assert comparable(done.folder)[0] == comparable(whole.folder)[0]


def test_force_does_not_disturb_a_run_in_progress(tmp_path):
    config = config_of("fine-tuning", **{"training.iterations": 5})
    with pytest.raises(Interrupted):
        run(config, tmp_path, RunOptions(stop=lambda: True))
    checkpoint = tmp_path / config.hash / "checkpoint.safetensors"
    before = checkpoint.read_bytes()
    with (
        RunFolder(tmp_path, config.hash).locked(config),
        pytest.raises(PerdureError, match="another process"),
    ):
        run(config, tmp_path, force=True)
    assert checkpoint.read_bytes() == before
    assert not run(config, tmp_path, force=True).found  # and goes on with it


def test_numbers_do_not_depend_on_the_callers_threads(tmp_path):
    config = config_of("fine-tuning", **{"training.iterations": 30})
    records = []
    for threads in (1, 2):
        torch.set_num_threads(threads)
        records.append(run(config, tmp_path / str(threads)).record)
        assert torch.get_num_threads() == threads
    torch.set_num_threads(1)
    assert records[0].curves == records[1].curves
    assert records[0].machine["threads"] == "1"
    assert records[0].machine["digits"] == str(DIGITS)


def test_every_single_iteration_can_be_the_last(tmp_path):
    """Stop after each iteration in turn; the run still ends as if it had never stopped."""
    config = config_of("masking+si", **{"training.iterations": 6, "training.validate_every": 4})
    whole = run(config, tmp_path / "whole")
    calls = 0
    while not (tmp_path / "stopped" / config.hash / "record.json").exists():
        stopping = RunOptions(stop=lambda: True)
        if calls < 3 * 6:
            with pytest.raises(Interrupted, match="continues"):
                run(config, tmp_path / "stopped", stopping)
            calls += 1
        else:
            done = run(config, tmp_path / "stopped", stopping)
    assert calls == 3 * 6
    assert comparable(done.folder)[0] == comparable(whole.folder)[0]


def test_a_finished_run_is_not_run_again(tmp_path):
    config = config_of("fine-tuning", **{"training.iterations": 5})
    first = run(config, tmp_path)
    again = run(config, tmp_path)
    assert not first.found
    assert again.found
    assert again.record == first.record
    forced = run(config, tmp_path, force=True)
    assert not forced.found
    assert forced.record.accuracy == first.record.accuracy


def test_a_forced_run_leaves_the_record_until_it_has_another(tmp_path):
    """With what searches noted in it; an interruption costs nothing, and --force goes on from there."""
    config, looks = config_of("fine-tuning", **{"training.iterations": 5}), []
    first = run(config, tmp_path)
    folder = RunFolder(tmp_path, config.hash)
    noted = folder.note_search(first.record, "one", {"trial": 1})

    def stop_at(count):
        return RunOptions(stop=lambda: looks.append(1) or len(looks) == count)

    with pytest.raises(Interrupted, match="continues"):
        run(config, tmp_path, stop_at(3), force=True)
    assert folder.finished() == noted
    assert run(config, tmp_path).found
    done = run(config, tmp_path, stop_at(0), force=True)
    assert not done.found
    assert len(looks) == 5 * len(first.record.tasks), "each iteration was made once"
    assert folder.finished() == done.record
    assert done.record.searches == noted.searches
    assert done.record.accuracy == first.record.accuracy
    assert done.record.timings != first.record.timings
    assert not {"checkpoint.safetensors", ".again"} & {path.name for path in done.folder.iterdir()}
    looks.clear()
    run(config, tmp_path, stop_at(0), force=True)
    assert len(looks) == 5 * len(first.record.tasks), "from the start again"


def hold(config_json, runs, ready):
    from perdure.config import from_json

    config = from_json(config_json)
    with RunFolder(Path(runs), config.hash).locked(config):
        ready.set()
        time.sleep(60)


def test_the_lock_of_a_killed_process_ends_with_it(tmp_path, server):
    config, ready = config_of("fine-tuning", **{"training.iterations": 5}), server.Event()
    process = server.Process(target=hold, args=(config.json, str(tmp_path), ready))
    process.start()
    assert ready.wait(60)
    with pytest.raises(PerdureError, match="another process"):
        run(config, tmp_path)
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    assert not run(config, tmp_path).found


def test_two_searches_note_themselves_in_one_record(tmp_path, monkeypatch):
    """Both have read the record before either wrote; the folder is locked while one writes."""
    record = run(config_of("fine-tuning", **{"training.iterations": 5}), tmp_path).record
    folder = RunFolder(tmp_path, record.hash)
    folder.note_search(record, "one", {"trial": 1})
    noted = folder.note_search(record, "two", {"trial": 2})
    assert noted.searches == {"one": {"trial": 1}, "two": {"trial": 2}}
    assert folder.finished() == noted
    monkeypatch.setattr("perdure.storage.store.PATIENCE", 0.05)
    with FileLock(folder.path / ".lock"), pytest.raises(Busy):
        folder.note_search(record, "three", {"trial": 3})
    assert folder.finished() == noted


def test_locks_are_free_again_although_something_still_refers_to_them(tmp_path, monkeypatch):
    """As a traceback does, or an interpreter that does not count references."""
    made = []
    monkeypatch.setattr("filelock.FileLock", lambda path: made.append(FileLock(path)) or made[-1])
    config = config_of("fine-tuning", **{"training.iterations": 5})
    record, folder = run(config, tmp_path).record, RunFolder(tmp_path, config.hash)
    folder.note_search(record, "one", {"trial": 1})
    RunFolder(tmp_path / "elsewhere", config.hash).bring(record)
    with folder.locked(config):
        assert [lock.is_locked for lock in made] == [False, False, False, True]
    assert not made[-1].is_locked


def test_a_lock_that_cannot_be_made_is_a_sentence(tmp_path):
    config = config_of("fine-tuning", **{"training.iterations": 5})
    (tmp_path / config.hash / ".lock").mkdir(parents=True)
    with pytest.raises(PerdureError, match="Cannot write to"):
        run(config, tmp_path)


def test_a_folder_of_runs_that_cannot_be_made_is_a_sentence_with_the_option(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(PerdureError, match=r"^Cannot write to '.*' \(.*\); choose .* with --runs DIR\.$"):
        run(config_of("fine-tuning", **{"training.iterations": 5}), tmp_path / "file" / "runs")


def test_a_run_in_progress_is_not_disturbed(tmp_path):
    config = config_of("fine-tuning", **{"training.iterations": 5})
    folder = RunFolder(tmp_path, config.hash)
    with folder.locked(config), pytest.raises(PerdureError, match="another process"):
        run(config, tmp_path)


@pytest.mark.parametrize("cut", [0, 7, 100, -1])
def test_a_damaged_checkpoint_is_set_aside(tmp_path, cut):
    config = config_of("fine-tuning", **{"training.iterations": 5})
    whole = run(config, tmp_path / "whole")
    with pytest.raises(PerdureError):
        run(config, tmp_path, RunOptions(stop=lambda: True))
    path = tmp_path / config.hash / "checkpoint.safetensors"
    content = bytearray(path.read_bytes())
    if cut < 0:
        content[-1] ^= 1  # a single flipped bit
    path.write_bytes(content if cut < 0 else content[:cut])
    done = run(config, tmp_path)
    assert "set aside as 'checkpoint.safetensors.damaged-1'" in done.warnings[0]
    assert (path.parent / "checkpoint.safetensors.damaged-1").exists()
    assert done.record.accuracy == whole.record.accuracy


@pytest.mark.parametrize("content", ["", '{"hash": "x', "[1, 2]", '{"final": 3}'])
def test_a_damaged_record_is_set_aside_and_made_again(tmp_path, content):
    config = config_of("fine-tuning", **{"training.iterations": 5})
    first = run(config, tmp_path)
    (first.folder / "record.json").write_text(content)
    records, warnings = all_records(tmp_path)
    assert not records
    assert f"The record of run {config.hash} cannot be used" in warnings[0]
    assert (first.folder / "record.json").read_text() == content  # looking changes nothing
    again = run(config, tmp_path)
    assert "set aside as 'record.json.damaged-1'" in again.warnings[0]
    assert again.record.accuracy == first.record.accuracy


def test_a_record_of_a_newer_version_is_not_replaced(tmp_path):
    config = config_of("fine-tuning", **{"training.iterations": 5})
    path = run(config, tmp_path).folder / "record.json"
    data = read_json(path) | {"format": 2}
    write_json(path, data | {"versions": data["versions"] | {"perdure": "9.0"}})
    with pytest.raises(PerdureError, match=r"Perdure 9\.0.*--force"):
        run(config, tmp_path)
    assert read_json(path)["format"] == 2
    assert "set aside" in run(config, tmp_path, force=True).warnings[0]


def test_a_full_disk_loses_nothing(tmp_path, monkeypatch):
    target = tmp_path / "file.json"
    write_json(target, {"old": 1})

    def full(handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("perdure.files.os.fsync", full)
    with pytest.raises(PerdureError, match="disk is full"):
        write_json(target, {"new": 2})
    assert target.read_text() == '{\n "old": 1\n}\n'
    assert [path.name for path in tmp_path.iterdir()] == ["file.json"]


def test_tensors_survive_the_file(tmp_path):
    tensors = {"a": torch.arange(5), "b": torch.tensor(2.5), "c": torch.zeros(0, 3)}
    write_tensors(tmp_path / "t", tensors, {"x": [1, None]})
    back, facts = read_tensors(tmp_path / "t")
    assert facts == {"x": [1, None]}
    for name, tensor in tensors.items():
        assert torch.equal(back[name], tensor)
    write(tmp_path / "t", b"no tensors at all")
    with pytest.raises(Damaged):
        read_tensors(tmp_path / "t")


def test_runs_are_found_by_prefix_and_path(tmp_path):
    config = config_of("fine-tuning", **{"training.iterations": 5})
    done = run(config, tmp_path)
    assert find_run(tmp_path, config.hash[:4]).path.name == config.hash
    assert find_run(Path("elsewhere"), str(done.folder)).path == done.folder.resolve()
    with pytest.raises(PerdureError, match="No run 'zzz'"):
        find_run(tmp_path, "zzz")


def test_knowledge_is_kept_after_each_phase(tmp_path):
    config = config_of("online-ewc", **{"training.iterations": 5})
    done = run(config, tmp_path)
    folder = RunFolder(tmp_path, config.hash)
    names = set(folder.knowledge(1))
    assert {"parameters/body", "memory/online-ewc/importance.body"} <= names
    (done.folder / "after-1.safetensors").write_bytes(b"x")
    with pytest.raises(PerdureError, match="cannot be used"):
        folder.knowledge(0)
