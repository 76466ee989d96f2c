"""Ctrl-C and SIGTERM at known moments: one sentence, the right exit code, and runs that go on later.

The moments are chosen by plugins that signal the command from within, so a busy machine changes nothing.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from hostile import Outcome, check, command
from perdure.storage.store import all_records
from perdure.testing.methods import SMALL

STOPS = [(signal.SIGINT, 130), (signal.SIGTERM, 143)]
WAIT = 300
"""Seconds after which a test gives up, even on a busy machine."""

AT_ONCE = """
import os, sys
assert "torch" not in sys.modules
os.kill(os.getpid(), {number})
raise SystemExit("the signal did not end the command")
"""

BELL = """
import os, time
from pathlib import Path
from perdure.hooks import Hook, PhaseContext, Term
from perdure.methods import Method
from perdure.penalties.penalty import Penalty

class Bell(Penalty):
    '''Sends a signal to the command at one iteration, once.'''

    def begin(self, memory, context):
        return Ringing(context)

class Ringing(Term):
    def __init__(self, context):
        self.context = context

    def losses(self, step):
        ring = os.environ.get("BELL")
        if ring and Path("rung").exists():
            time.sleep(0.5)  # so that nothing ends before the command has looked, however busy the machine is
        if ring and self.context.tasks == [1] and step.number == 3:
            self.ring(ring)
        return {}

    def ring(self, ring):
        try:
            Path("rung").touch(exist_ok=False)
        except FileExistsError:
            return
        os.kill(int(Path("command.pid").read_text()), int(ring))

ringing = Method("ringing", "fine-tuning that rings a bell", penalties=("bell",))
"""


def perdure(*words, folder=".", **environment):
    """A command in a process of its own, which writes its number down."""
    code = "import os, sys; open('command.pid', 'w').write(str(os.getpid()));"
    code += "from perdure.cli import main; sys.exit(main())"
    done = subprocess.run(
        [sys.executable, "-c", code, *words], capture_output=True, text=True, timeout=WAIT,
        env=os.environ | environment, cwd=folder,
    )  # fmt: skip
    outcome = Outcome(done.returncode, done.stdout, done.stderr)
    check(words, outcome)
    return outcome


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such signals")
@pytest.mark.parametrize(("number", "code"), STOPS)
def test_signals_before_anything_is_loaded(number, code):
    Path("early.py").write_text(AT_ONCE.format(number=int(number)))
    done = perdure("run", "permuted-copy", "si", "--plugin", "early.py")
    assert done.code == code
    assert done.err == "perdure: Stopped before anything was begun that could be lost.\n"


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such signals")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_handlers_stand_when_the_command_begins_and_until_the_process_ends(number):
    code = (
        "import os, sys, atexit, perdure.cli as cli\n"
        f"atexit.register(lambda: os.kill(os.getpid(), {int(number)}))\n"
        "heavy = {'torch', 'numpy', 'pydantic', 'rich', 'argparse'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
        "sys.argv = ['perdure', 'list']\n"
        "sys.exit(cli.main())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=WAIT)
    assert (done.returncode, done.stderr) == (0, "")


def test_handlers_are_as_before_where_others_call_the_command():
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    command(["list"])
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before


def words_of(runs):
    few = {name: value for name, value in SMALL.items() if not name.startswith(("weights", "rehearsal"))}
    few |= {"benchmark.tasks": 2, "training.iterations": 8}
    words = [
        "run",
        "permuted-copy",
        "ringing",
        "--plugin",
        "bell.py",
        "--scale",
        "smoke",
        "--seeds",
        "3",
        "--json",
    ]
    return [*words, "--runs", runs, *(f"--{name}={str(value).lower()}" for name, value in few.items())]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """The curves of runs that nothing stops, as JSON has them."""
    folder = tmp_path_factory.mktemp("undisturbed")
    (folder / "bell.py").write_text(BELL)
    done = perdure(*words_of("whole"), folder=folder)
    assert done.code == 0, done.err
    return [json.loads(line)["curves"] for line in done.out.splitlines()]


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such signals")
@pytest.mark.parametrize(("number", "code"), STOPS)
@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_stopped_run_says_so_and_goes_on_later(number, code, workers, undisturbed):
    Path("bell.py").write_text(BELL)
    done = perdure(*words_of("stopped"), "--workers", workers, BELL=str(int(number)))
    assert done.code == code
    assert "continues where it" in done.sentences[0]
    assert len(all_records(Path("stopped"))[0]) < 3  # the signal stops what is running and what waits
    again = perdure(*words_of("stopped"))
    assert again.code == 0
    assert [json.loads(line)["curves"] for line in again.out.splitlines()] == undisturbed


GONE = BELL.replace(
    'os.kill(int(Path("command.pid").read_text()), int(ring))',
    "os.rename(ring, 'removed')",  # at one stroke: shutil.rmtree fails where another process adds files
)


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_folder_that_is_removed_under_a_run_is_noticed(workers):
    assert "rename" in GONE
    Path("bell.py").write_text(GONE)
    done = perdure(*words_of("runs"), "--workers", workers, BELL=str(Path("runs").resolve()))
    assert done.code == 2
    assert "was removed while its run was in progress" in done.sentences[0]
    found, faults = all_records(Path("runs"))
    assert not faults
    for record in found:  # those that others wrote are whole
        states = {path.name for path in Path("runs", record.hash).glob("after-*")}
        assert states == {"after-1.safetensors", "after-2.safetensors"}
    shutil.rmtree("runs", ignore_errors=True)
    assert perdure(*words_of("runs")).code == 0


WRITERS = ["save", "keep", "publish"]


@pytest.mark.parametrize(
    ("what", "moment"), [("locked", "within"), *((w, m) for w in WRITERS for m in ("before", "within"))]
)
def test_a_folder_that_is_removed_while_a_file_is_being_written_is_noticed(
    what, moment, tmp_path, monkeypatch
):
    from perdure.errors import PerdureError
    from perdure.experiment import run
    from perdure.storage.store import RunFolder
    from perdure.testing import small

    config = small("fine-tuning", **{"benchmark.tasks": 2})
    record = run(config, tmp_path / "elsewhere").record
    folder = RunFolder(tmp_path / "runs", config.hash)

    def locked():
        with folder.locked(config):
            pass

    locked()
    writers = {
        "locked": locked,
        "save": lambda: folder.save({}, {}),
        "keep": lambda: folder.keep(0, {}),
        "publish": lambda: folder.publish(record, kept=False),
    }
    if moment == "within":  # `files.write` draws the name of its temporary file when it has the folder
        monkeypatch.setattr("perdure.files.secrets.token_hex", lambda _: str(shutil.rmtree(folder.path)))
    else:
        present = folder._check_present
        removing = iter([lambda: (present(), shutil.rmtree(folder.path)), present])
        monkeypatch.setattr(folder, "_check_present", lambda: next(removing)())
    with pytest.raises(PerdureError, match="was removed while its run was in progress"):
        writers[what]()


def test_a_disk_that_is_full_when_a_run_begins_is_not_a_removed_folder(tmp_path, monkeypatch):
    import errno

    from perdure.errors import PerdureError
    from perdure.storage.store import RunFolder
    from perdure.testing import small

    def full(handle):
        raise OSError(errno.ENOSPC, "No space left on device")

    config = small("fine-tuning")
    monkeypatch.setattr("perdure.files.os.fsync", full)
    with (
        pytest.raises(PerdureError, match="The disk is full"),
        RunFolder(tmp_path, config.hash).locked(config),
    ):
        pass


def test_a_folder_that_is_removed_while_it_is_tried_is_made_again(tmp_path, monkeypatch):
    from perdure.storage.store import writable

    names = iter([lambda: str(shutil.rmtree(tmp_path / "runs")), lambda: "again"])
    monkeypatch.setattr("perdure.files.secrets.token_hex", lambda _: next(names)())
    writable(tmp_path / "runs")
    assert list((tmp_path / "runs").iterdir()) == []


def test_a_folder_that_is_removed_and_made_again_is_noticed(tmp_path):
    """All that is left is what came later: not a finished run."""
    from perdure.experiment import run
    from perdure.learning.engine import RunOptions
    from perdure.testing import small

    config = small("fine-tuning", **{"benchmark.tasks": 2})
    folder = tmp_path / "runs" / config.hash

    def watch(progress):
        if progress.accuracy is not None and progress.phase == 0:
            (folder / "after-1.safetensors").unlink()

    with pytest.raises(Exception, match="was removed while its run was in progress"):
        run(config, tmp_path / "runs", RunOptions(watch=watch))
    assert all_records(tmp_path / "runs") == ([], [])
    assert {path.name for path in run(config, tmp_path / "runs").folder.glob("after-*")} == {
        "after-1.safetensors", "after-2.safetensors",
    }  # fmt: skip
