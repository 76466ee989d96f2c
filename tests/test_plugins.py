"""Pieces from outside: found by name, hashed by content, run by workers, refused with a sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

import perdure.testing
from perdure import Method, Penalty, Term, registry
from perdure.cli import main
from perdure.config import build, from_json
from perdure.errors import PerdureError
from perdure.executors import run_many
from perdure.registry import load_plugin, methods, pieces, register

PLUGINS = Path(__file__).parent.parent / "examples" / "plugins"
EXAMPLES = {"mas.py": "mas", "a_gem.py": "a-gem"}


class Still(Penalty):
    """A penalty that does nothing, for trying."""

    def begin(self, memory, context):
        return Term()


still = Method("still", "nothing happens", penalties=("still",))


@pytest.mark.parametrize(("file", "method"), EXAMPLES.items())
def test_the_examples_keep_the_contract(file, method, capsys):
    assert len((PLUGINS / file).read_text().splitlines()) <= 40
    assert main(["list", "--plugin", str(PLUGINS / file)]) == 0
    assert f"  {method} " in capsys.readouterr().out
    perdure.testing.check_method(method)


def test_a_projected_gradient_does_not_raise_the_loss_on_stored_samples():
    """g . r >= 0 after the projection wherever it was negative before: the promise of A-GEM."""
    import torch

    load_plugin(PLUGINS / "a_gem.py")
    config = perdure.testing.small("a-gem", **{"training.iterations": 40})
    from perdure.experiment import assemble, generators_of, on_device
    from perdure.learning.engine import begin_phase
    from perdure.learning.learner import init

    tasks, learner = assemble(config)
    data, state = on_device(tasks, "cpu"), init(learner)
    first = begin_phase(learner, state, [0], data, config.training, generators_of(config))
    while not first.done:
        first.step()
    second = begin_phase(learner, first.finish(), [1], data, config.training, generators_of(config))
    term, angles = second.terms["rehearsal"], []
    from perdure.rehearsal.samples import loss_on_stored

    original = term.transform

    def watched(step, gradients):
        reference = step.gradient(loss_on_stored(term.kept, step.active, term.context))
        changed = original(step, gradients)
        angles.append(
            [sum(float(torch.dot(g[n], reference[n])) for n in gradients) for g in (gradients, changed)]
        )
        return changed

    term.transform = watched
    while not second.done:
        second.step()
    against = [after for before, after in angles if before < 0]
    assert against, "no gradient ever pointed against the old task"
    assert all(abs(after) < 1e-5 for after in against)
    assert all(before == pytest.approx(after) for before, after in angles if before >= 0)


def test_pieces_are_registered_from_python():
    register(Still, still)
    assert pieces("penalties")["still"] is Still
    assert methods()["still"] is still
    config = build("permuted-copy", "masking+still", scale="smoke")
    assert "still" in config.penalties
    assert config.json["plugins"] == {__name__: registry.origin(Still).digest}


def test_the_content_of_a_plugin_is_part_of_the_hash(tmp_path):
    text = (PLUGINS / "mas.py").read_text()
    hashes = []
    for number, content in enumerate((text, text, text + "\n# changed\n")):
        file = tmp_path / str(number) / "mas.py"
        file.parent.mkdir()
        file.write_text(content)
        load_plugin(file)
        hashes.append(build("permuted-copy", "mas", scale="smoke").hash)
    assert hashes[0] == hashes[1] != hashes[2]
    assert build("permuted-copy", "si").hash == build("permuted-copy", "si").hash
    assert "plugins" not in build("permuted-copy", "si").json


def test_a_config_names_the_plugin_that_is_missing(monkeypatch):
    load_plugin(PLUGINS / "mas.py")
    data = build("permuted-copy", "mas", scale="smoke").json
    changed = data | {"plugins": {"mas.py": "0" * 16}}
    with pytest.raises(PerdureError, match="changed"):
        from_json(changed)
    monkeypatch.setattr(registry, "OUTSIDE", registry.Outside(installed=True))
    monkeypatch.setattr("perdure.config.OUTSIDE", registry.OUTSIDE)
    with pytest.raises(PerdureError, match=r"plugin 'mas\.py'.*--plugin"):
        from_json(data)


def test_workers_load_plugins(tmp_path):
    load_plugin(PLUGINS / "mas.py")
    configs = [perdure.testing.small("mas", seed=seed) for seed in (0, 1)]
    results = run_many(configs, tmp_path, workers=2)
    assert [result.record.method for result in results] == ["mas", "mas"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("x = 1\n", "defines no piece"),
        ("import nothing_of_that_name\n", "ModuleNotFoundError"),
        ("def broken(:\n", "SyntaxError"),
        ("from perdure import Method\nsi = Method('si', 'mine')\n", "'si' .*already|already.*'si'"),
    ],
)
def test_plugins_that_cannot_be_used_get_a_sentence(content, message, tmp_path, capsys):
    file = tmp_path / "mine.py"
    file.write_text(content)
    assert main(["list", "--plugin", str(file)]) == 2
    said = capsys.readouterr().err
    with pytest.raises(PerdureError, match=message):
        load_plugin(file)
    assert said.count("\n") == 1
    assert "Traceback" not in said


@pytest.mark.parametrize("words", [["list", "--plugin"], ["list", "--plugin", "missing.py"]])
def test_a_plugin_option_needs_a_file(words, capsys):
    assert main(words) == 2
    assert "--plugin" in capsys.readouterr().err


def test_entry_points_are_loaded(monkeypatch):
    class Entry:
        value = "test_plugins"

        @staticmethod
        def load():
            import test_plugins

            return test_plugins

    monkeypatch.setattr(registry, "entry_points", lambda group: [Entry] if group == registry.GROUP else [])
    registry.OUTSIDE.installed = False
    assert "still" in methods()
    assert pieces("penalties")["still"].__name__ == "Still"


def test_names_with_a_plus_are_found_first():
    from perdure.methods import parts_of

    known = ["si", "hnet", "hnet+r", "der++", "der"]
    assert parts_of("hnet+r+si", known) == ["hnet+r", "si"]
    assert parts_of("der+++si", known) == ["der++", "si"]
    assert parts_of("hnet+si", known) == ["hnet", "si"]
    assert parts_of("si+", known) == ["si", ""]
    assert parts_of("nothing+si", known) == ["nothing", "si"]
