"""Pieces from outside: found by name, hashed by content, run by workers, refused with a sentence."""

from __future__ import annotations

import hashlib
import shlex
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
import torch

import perdure.testing
from perdure import Method, Penalty, Term, registry
from perdure.cli import main
from perdure.config import build, from_json
from perdure.errors import PerdureError
from perdure.executors import run_many
from perdure.experiment import assemble, generators_of, on_device
from perdure.learning.contract import begun, returned
from perdure.learning.engine import begin_phase
from perdure.learning.learner import init
from perdure.plugin_sources import digest_of
from perdure.registry import load_plugin, methods, pieces, register
from perdure.report.reproduce import command_of

PLUGINS = Path(__file__).parent.parent / "examples" / "plugins"
EXAMPLES = {"mas.py": "my-mas", "a_gem.py": "my-a-gem"}


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
    load_plugin(PLUGINS / "a_gem.py")
    config = perdure.testing.small("my-a-gem", **{"training.iterations": 40})
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
    assert config.json["plugins"] == {
        f"{__name__}.Still": registry.origin(Still).digest,
        "method still": registry.origin(still).digest,
    }


def test_what_cannot_be_registered_gets_a_sentence():
    for wrong, message in (
        (3, r"give it classes of pieces, such as a Penalty, and Methods \(given: 3\)"),
        (Still(), r"give it the class Still itself, not an object of it \(given: Still\(\)\)"),
    ):
        with pytest.raises(PerdureError, match=f"^register: {message}"):
            register(still, wrong)


def test_two_classes_of_one_module_are_told_apart():
    class First(Still):
        name: ClassVar[str] = "first-of-two"

    class Second(Still):
        name: ClassVar[str] = "second-of-two"

    both = Method("two-of-one", "both", penalties=("first-of-two", "second-of-two"))
    register(First, Second, both)
    plugins = build("permuted-copy", "two-of-one", scale="smoke").json["plugins"]
    assert len(plugins) == 3
    assert {registry.origin(each).digest for each in (First, Second, both)} == set(plugins.values())


def test_a_method_alone_is_a_plugin_too(tmp_path, monkeypatch):
    """Its content is part of the hash, and it is named where it is missing."""
    file = tmp_path / "only_a_method.py"
    text = "from perdure import Method\nmine = Method('only-mine', 'as si', penalties=('si',))\n"
    file.write_text(text)
    source = load_plugin(file)
    config = build("permuted-copy", "only-mine", scale="smoke")
    assert config.json["plugins"] == {"only_a_method.py": source.digest}
    assert build("permuted-copy", "si+only-mine", scale="smoke").json["plugins"]
    assert from_json(config.json).hash == config.hash
    monkeypatch.setattr(registry, "OUTSIDE", registry.Outside(installed=True))
    with pytest.raises(PerdureError, match=r"plugin 'only_a_method\.py'"):
        from_json(config.json)


def test_a_plugin_is_known_by_the_modules_beside_it_too(tmp_path):
    """What helpers say changes results; other files in the folder, and a plugin by itself, do not."""
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "__init__.py").write_text("")
    (tmp_path / "deep" / "level.py").write_text("from .. import nothing\nX = 1\n")
    (tmp_path / "helper.py").write_text("import deep.level, math\nF = 1.0\n")
    (tmp_path / "unused.py").write_text("F = 1.0\n")
    plugin, alone = tmp_path / "mine.py", tmp_path / "alone.py"
    plugin.write_text("def later():\n    from helper import F\n    return F\n")
    alone.write_text("F = 1.0\n")
    assert digest_of(alone) == hashlib.sha256(alone.read_bytes()).hexdigest()[:16]
    seen = [digest_of(plugin)]
    (tmp_path / "unused.py").write_text("F = 2.0\n")
    assert digest_of(plugin) == seen[0]
    for name in ("helper.py", "deep/level.py", "deep/__init__.py", "mine.py"):
        path = tmp_path / name
        path.write_text(path.read_text() + "# changed\n")
        seen.append(digest_of(plugin))
    assert len(set(seen)) == 5
    moved = tmp_path.rename(tmp_path.with_name("elsewhere"))
    assert digest_of(moved / "mine.py") == seen[-1]
    inside = moved / "deep" / "entry.py"  # a module of an installed package
    inside.write_text("from .level import X\n")
    before = digest_of(inside)
    (moved / "deep" / "level.py").write_text("X = 2\n")
    assert digest_of(inside) != before


def test_a_refused_plugin_leaves_nothing_behind(tmp_path):
    file = tmp_path / "half.py"
    file.write_text(
        "from perdure import Method, Penalty, Term\n"
        "class Half(Penalty):\n    def begin(self, memory, context):\n        return Term()\n"
        "si = Method('si', 'taken')\n"
    )
    before = registry.OUTSIDE.changes
    with pytest.raises(PerdureError, match="already has a method 'si'"):
        load_plugin(file)
    assert "half" not in pieces("penalties")
    assert registry.OUTSIDE.changes == before
    assert not any(str(file) == each for each in registry.loaded_plugins())


def test_a_plugin_cannot_take_the_name_of_another(tmp_path):
    content = "from perdure import Method\nmine = Method('owned', 'as si', penalties=('si',))\n"
    first, second, again = tmp_path / "first.py", tmp_path / "second.py", tmp_path / "new" / "first.py"
    again.parent.mkdir()
    for file in (first, second, again):
        file.write_text(content)
    load_plugin(first)
    with pytest.raises(PerdureError, match=r"'first\.py' already has a method 'owned'.*'second\.py'"):
        load_plugin(second)
    load_plugin(again)  # the same plugin, from another folder


def test_two_pieces_of_one_plugin_need_two_names(tmp_path):
    file = tmp_path / "twins.py"
    file.write_text(
        "from perdure import Method\n"
        "one = Method('twin', 'as si', penalties=('si',))\n"
        "two = Method('twin', 'as ewc', penalties=('online-ewc',))\n"
    )
    with pytest.raises(PerdureError, match="two pieces called 'twin'"):
        load_plugin(file)


def test_a_config_finds_plugins_of_installed_packages(monkeypatch):
    """The first thing a process does may be to read a config: entry points are loaded before it is judged."""
    import test_plugins

    class Entry:
        value = "test_plugins"

        @staticmethod
        def load():
            return test_plugins

    monkeypatch.setattr(registry, "entry_points", lambda group: [Entry] if group == registry.GROUP else [])
    monkeypatch.setattr(registry, "OUTSIDE", registry.Outside())
    data = build("permuted-copy", "still", scale="smoke").json
    monkeypatch.setattr(registry, "OUTSIDE", registry.Outside())
    assert from_json(data).method == "still"


def test_the_content_of_a_plugin_is_part_of_the_hash(tmp_path):
    text = (PLUGINS / "mas.py").read_text()
    hashes = []
    for number, content in enumerate((text, text, text + "\n# changed\n")):
        file = tmp_path / str(number) / "mas.py"
        file.parent.mkdir()
        file.write_text(content)
        load_plugin(file)
        hashes.append(build("permuted-copy", "my-mas", scale="smoke").hash)
    assert hashes[0] == hashes[1] != hashes[2]
    assert build("permuted-copy", "si").hash == build("permuted-copy", "si").hash
    assert "plugins" not in build("permuted-copy", "si").json


def test_a_config_names_the_plugin_that_is_missing(monkeypatch):
    load_plugin(PLUGINS / "mas.py")
    data = build("permuted-copy", "my-mas", scale="smoke").json
    changed = data | {"plugins": {"mas.py": "0" * 16}}
    with pytest.raises(PerdureError, match="changed"):
        from_json(changed)
    monkeypatch.setattr(registry, "OUTSIDE", registry.Outside(installed=True))
    with pytest.raises(PerdureError, match=r"plugin 'mas\.py'.*--plugin"):
        from_json(data)


def test_workers_load_plugins(tmp_path):
    load_plugin(PLUGINS / "mas.py")
    configs = [perdure.testing.small("my-mas", seed=seed) for seed in (0, 1)]
    results = run_many(configs, tmp_path, workers=2)
    assert [result.record.method for result in results] == ["my-mas", "my-mas"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("x = 1\n", "defines no piece"),
        ("import nothing_of_that_name\n", "ModuleNotFoundError"),
        ("def broken(:\n", "SyntaxError"),
        ("from perdure import Method\nsi = Method('si', 'mine')\n", "'si' .*already|already.*'si'"),
        (
            "from perdure import Method, Penalty\n"
            "class Mine(Penalty):\n    def begn(self, memory, context): ...\n"
            "mine = Method('mine', 'mine', penalties=('mine',))\n",
            "Mine must define begin",
        ),
        (
            "from perdure import Method\nmine = Method('mine', 'mine', penalties=('mine'))\n",
            r"Method 'mine': penalties must be a tuple .* \(\"mine\",\)",
        ),
        ("from perdure import Method\nmine = Method('mine', 'mine', penalties=['si'])\n", "must be a tuple"),
        (
            "from perdure import Method\nmine = Method('mine', 'mine', rehearsal=('er',))\n",
            "rehearsal must be",
        ),
        (
            "from perdure import Penalty\nclass Mine(Penalty):\n    strength = 1.0\n",
            r"'[^']*mine\.py' cannot be loaded: Mine\.strength has no type; write [^\n]*option\.$",
        ),
        (
            "from perdure.penalties.si import SI\nclass Mine(SI):\n    strength = 1.0\n",
            r"cannot be loaded: Mine\.strength has no type",
        ),
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


BEGIN = "    def begin(self, memory, context):\n        return Term()\n"
OTHERS = {
    "class Mine:\n    name = 'mine'\n": r"Unknown penalty 'mine': the class Mine of 'mine\.py' .*\.Penalty",
    "class Mine(Term): ...\n": r"the class Mine of 'mine\.py' has this name, but is not derived from",
    f"class Mine(Rehearsal):\n{BEGIN}": "'mine' is a rehearsal, but a penalty is needed here",
    f"class Mine(Penalty):\n    factor: float\n{BEGIN}": (
        r"^penalties\.mine\.factor: it has no value; give it one, or Mine\.factor a default in the class\.$"
    ),
}
"""Classes that are not the penalty they are taken for, and what is said when the method is used."""


@pytest.mark.parametrize(("content", "message"), OTHERS.items())
def test_a_class_that_is_no_penalty_is_named_where_one_is_needed(content, message, tmp_path, monkeypatch):
    monkeypatch.setattr(registry, "OUTSIDE", registry.Outside(installed=True, changes=registry.changes() + 1))
    file = tmp_path / "mine.py"
    file.write_text(
        f"from perdure import Method, Penalty, Rehearsal, Term\n{content}"
        "method = Method('by-mine', 'mine', penalties=('mine',))\n"
    )
    load_plugin(file)
    with pytest.raises(PerdureError, match=message):
        build("permuted-copy", "by-mine", scale="smoke")


def test_an_option_without_a_default_may_be_given(tmp_path):
    file = tmp_path / "needy.py"
    file.write_text(
        "from perdure import Method, Penalty, Term\n"
        f"class Needy(Penalty):\n    factor: float\n{BEGIN}"
        "needy = Method('needy', 'mine', penalties=('needy',))\n"
    )
    load_plugin(file)
    config = build("permuted-copy", "needy", scale="smoke", penalties__needy__factor=2)
    assert config.penalties["needy"].factor == 2


def test_a_base_of_other_pieces_need_not_be_complete(tmp_path):
    file = tmp_path / "based.py"
    file.write_text(
        "from perdure import Penalty, Term\nclass Base(Penalty): ...\n"
        "class Derived(Base):\n    def begin(self, memory, context):\n        return Term()\n"
    )
    load_plugin(file)
    assert {"derived"} <= set(pieces("penalties"))
    assert "base" not in pieces("penalties")


def test_a_memory_that_is_none_is_named(tmp_path):
    """Forgetting to return it is the most likely slip in a method of one's own."""
    file = tmp_path / "forgetful.py"
    file.write_text(
        "from perdure import Method, Penalty, Term\n"
        "class Forgetful(Penalty):\n    def begin(self, memory, context):\n        return ForgetfulTerm()\n"
        "class ForgetfulTerm(Term):\n    def finish(self, end):\n        {}\n"
        "forgetful = Method('forgetful', 'forgets', penalties=('forgetful',))\n"
    )
    load_plugin(file)
    with pytest.raises(PerdureError, match=r"forgetful: finish\(\) must return its memory, .* returned None"):
        perdure.run(perdure.testing.small("forgetful"), tmp_path / "runs")


def test_commands_load_the_plugins_that_they_need(tmp_path, monkeypatch, capsys):
    """What is printed as the command of a run works as it stands."""
    file = tmp_path / "mas.py"
    file.write_text((PLUGINS / "mas.py").read_text().replace("my-mas", "own-mas").replace("MyMAS", "OwnMAS"))
    monkeypatch.chdir(tmp_path)
    assert main(["run", "permuted-copy", "own-mas", "--scale", "smoke", "--plugin", "mas.py"]) == 0
    (record,) = perdure.records(tmp_path / "runs")
    command = command_of(record)
    assert command.endswith("--plugin mas.py")
    capsys.readouterr()
    assert main(shlex.split(command)[1:]) == 0
    assert len(perdure.records(tmp_path / "runs")) == 1  # the same run, which is not repeated
    monkeypatch.setenv("COLUMNS", "300")
    words = ["permuted-copy", "own-mas", "--penalties.own-mas.strength", "0.1,1", "--scale", "smoke"]
    capsys.readouterr()
    assert (
        main(["search", *words, "--trials", "2", "--seeds", "1", "--workers", "1", "--plugin", "mas.py"]) == 0
    )
    (told,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("To use it: ")]
    assert told.endswith(" --plugin mas.py")
    assert main(shlex.split(told)[4:]) == 0


@pytest.mark.parametrize("words", [["list", "--plugin"], ["list", "--plugin", "missing.py"]])
def test_a_plugin_option_needs_a_file(words, capsys):
    assert main(words) == 2
    said = capsys.readouterr().err
    assert "--plugin" in said
    assert ("does not exist" in said) == ("missing.py" in words)


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


def test_an_installed_plugin_that_is_broken_is_told_each_time(monkeypatch):
    """Not only the first time, or a process would go on without it; once mended, it is there."""
    import test_plugins

    class Entry:
        value = "test_plugins"
        broken = True

        @classmethod
        def load(cls):
            if cls.broken:
                raise ImportError("no module named 'gone'")
            return test_plugins

    monkeypatch.setattr(registry, "entry_points", lambda group: [Entry] if group == registry.GROUP else [])
    monkeypatch.setattr(registry, "OUTSIDE", registry.Outside())
    for ask in (methods, registry.origins, methods):
        with pytest.raises(PerdureError, match="'test_plugins' cannot be loaded: ImportError: no module"):
            ask()
    Entry.broken = False
    assert "still" in methods()


def test_names_with_a_plus_are_found_first():
    from perdure.methods import parts_of

    known = ["si", "hnet", "hnet+r", "der++", "der"]
    assert parts_of("hnet+r+si", known) == ["hnet+r", "si"]
    assert parts_of("der+++si", known) == ["der++", "si"]
    assert parts_of("hnet+si", known) == ["hnet", "si"]
    assert parts_of("si+", known) == ["si", ""]
    assert parts_of("nothing+si", known) == ["nothing", "si"]


class Preset(Still):
    """A penalty with an option, for presets."""

    strength: float = 1.0
    """A factor."""


@pytest.mark.parametrize(
    ("presets", "message"),
    [
        (
            {"permuted-copy": {"smoke": {"penalties.preset.strengthh": 2.0}}},
            r"presets, permuted-copy, smoke: Unknown option .* did you mean 'penalties\.preset\.strength'",
        ),
        ({"permuted-cop": {"smoke": {}}}, "presets: Unknown benchmark .* did you mean 'permuted-copy'"),
        ({"all": {"smokee": {}}}, "presets, all: Unknown scale .* did you mean 'smoke'"),
        ({"smnist": {"paper": {"training.rate": 1}}}, "presets, smnist, paper: Unknown option"),
        ({"all": {"penalties.preset.strength": 2.0}}, "presets, all: Unknown scale"),
        ({"all": 2.0}, r"presets, all: settings are given by scale, as in .*\(given: 2\.0\)"),
        ([1], "presets: settings are given by benchmark"),
    ],
)
def test_presets_that_would_set_nothing_are_refused(presets, message):
    register(Preset, Method("preset", "tries presets", penalties=("preset",), presets=presets))
    for name in ("preset", "masking+preset"):
        with pytest.raises(PerdureError, match=f"^Method 'preset', {message}"):
            build("permuted-copy", name, scale="smoke")


def test_presets_of_a_benchmark_that_is_registered_later(tmp_path):
    presets = {"later-copy": {"smoke": {"penalties.preset.strength": 3.0}}}
    register(Preset, Method("preset", "tries presets", penalties=("preset",), presets=presets))
    with pytest.raises(PerdureError, match="Unknown benchmark 'later-copy'"):
        build("permuted-copy", "preset", scale="smoke")
    file = tmp_path / "later.py"
    file.write_text(
        "from perdure.benchmarks.copy import PermutedCopy\n"
        'class Later(PermutedCopy):\n    """Mine."""\n    name = "later-copy"\n'
    )
    load_plugin(file)
    assert build("permuted-copy", "preset", scale="smoke").penalties["preset"].strength == 1
    assert build("later-copy", "preset", scale="smoke").penalties["preset"].strength == 3


def term_of(*, given=Term, **members):
    """The term of a hook called `mine`, begun as a phase does it."""
    kind = type("MineTerm", (given,), members)
    hook = type("Hook", (), {"name": "mine", "begin": lambda self, memory, context: kind()})()
    return begun(hook, {}, None)


def method(*given):
    """A method of a term."""


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({"loses": method}, r"MineTerm defines loses\(\).* rename it losses\(\)"),
        ({"loss": method}, r"rename it losses\(\)"),
        ({"transfrom": method, "transforms": True}, r"rename it transform\(\)"),
        ({"observe": method}, r'observe\(\).* write watches = "task" or "total"'),
        ({"transform": method}, "write transforms = True"),
        ({"redirect": method, "transforms": True}, "write redirects = True"),
        ({"observe": method, "watches": "tsk"}, "watches must be 'task', 'total' or None, but it is 'tsk'"),
    ],
)
def test_methods_of_a_term_that_are_never_called_are_named(members, message):
    with pytest.raises(PerdureError, match=f"^mine: .*{message}"):
        term_of(**members)


def test_a_misspelt_method_is_found_in_a_term_that_inherits_the_right_one():
    whole = type("Whole", (Term,), {"losses": method})
    with pytest.raises(PerdureError, match=r"MineTerm defines loses\(\)"):
        term_of(given=whole, loses=method)


NUMBER, VECTOR, ARRAY = torch.zeros(()), torch.zeros(3), np.zeros(3)
LIKE = {"body": VECTOR}


@pytest.mark.parametrize(
    ("method", "given", "message"),
    [
        ("losses", None, "a dict of losses by name, each a tensor with one number, but it returned None"),
        ("losses", NUMBER, r"but it returned a tensor of shape \(\)"),
        ("losses", {"mine": 1.5}, "but 'mine' is a value of type float"),
        ("losses", {"mine": VECTOR}, r"but 'mine' is a tensor of shape \(3,\)"),
        ("losses", {3: NUMBER}, "but a name in it is a value of type int"),
        ("along", 3, "a dict of batches by task, but it returned a value of type int"),
        ("along", {0: VECTOR}, r"but '0' is a tensor of shape \(3,\)"),
        ("transform", None, "the gradients, .* but it returned None"),
        ("transform", {"bdy": VECTOR}, r"but 'bdy' is none of what is trained \(body\)"),
        ("redirect", {"body": NUMBER}, r"but 'body' is a tensor of shape \(\) instead of \(3,\)"),
        ("state", [VECTOR], "but it returned a value of type list"),
        ("finish", {"omega": ARRAY}, "its memory, .* but 'omega' is a value of type ndarray"),
        ("finish", {"omega": torch.Tensor}, "but 'omega' is the class Tensor, not an object of it"),
    ],
)
def test_what_a_term_returns_is_checked(method, given, message):
    like = LIKE if method in ("transform", "redirect") else None
    with pytest.raises(PerdureError, match=rf"^mine: {method}\(\) must return .*{message}"):
        returned("mine", method, given, like)


def test_what_keeps_the_contract_is_returned_as_it_is():
    for name, given in (("losses", {"one": NUMBER, "other": torch.zeros(1)}), ("finish", {}), ("along", {})):
        assert returned("mine", name, given) is given
    assert returned("mine", "transform", LIKE, LIKE) is LIKE
    assert returned("mine", "redirect", {}, LIKE) == {}


def test_begin_must_return_a_term():
    for wrong, message in ((None, "None"), (3, "a value of type int"), (Term, "the class Term, not an")):
        hook = type("Hook", (), {"name": "mine", "begin": lambda self, memory, context, wrong=wrong: wrong})()
        with pytest.raises(PerdureError, match=rf"mine: begin\(\) must return a Term, but .*{message}"):
            begun(hook, {}, None)


def wrong_in_a_phase(**members):
    """Begin a phase with a term that has these members, and take one step."""
    kind = type("WrongTerm", (Term,), members)
    kept = type("Wrong", (Still,), {"begin": lambda self, memory, context: kind()})
    config = perdure.testing.small("fine-tuning")
    tasks, learner = assemble(config)
    learner = replace(learner, penalties={"wrong": kept()})
    data, state = on_device(tasks, "cpu"), init(learner)
    phase = begin_phase(learner, state, [0], data, config.training, generators_of(config))
    phase.step()
    return phase


@pytest.mark.parametrize(
    ("method", "flags"),
    [
        ("losses", {}),
        ("along", {}),
        ("transform", {"transforms": True}),
        ("redirect", {"redirects": True}),
    ],
)
def test_a_phase_checks_what_its_terms_return(method, flags):
    with pytest.raises(PerdureError, match=rf"wrong: {method}\(\) must return .* returned None"):
        wrong_in_a_phase(**{method: lambda self, *given: None}, **flags)


def test_what_a_term_leaves_out_stays_as_it_is():
    plain = wrong_in_a_phase().trained()
    for method, flags in (("transform", {"transforms": True}), ("redirect", {"redirects": True})):
        same = wrong_in_a_phase(**{method: lambda self, *given: {}}, **flags).trained()
        assert all(torch.allclose(same[name], plain[name], atol=1e-7) for name in plain)


def test_flags_that_are_set_are_decisions_and_helpers_are_left_alone():
    def decide(self):
        self.redirects = False

    assert term_of(redirect=method, __init__=decide).redirects is False
    assert term_of(transform=method, transforms=False).transforms is False
    parent = type("Parent", (Term,), {"observe": method, "watches": "total"})
    assert term_of(given=parent, observe=method).watches == "total"
    helpers = dict.fromkeys(("losses", "loss", "_finsh", "distance", "batch_size"), method)
    assert term_of(**helpers, observed=3)


def test_a_run_with_a_misspelt_method_is_refused(tmp_path):
    """Its results would be those of fine-tuning under another name."""
    file = tmp_path / "misspelt.py"
    file.write_text(
        "from perdure import Method, Penalty, Term\n"
        'class Misspelt(Penalty):\n    """Mine."""\n'
        "    def begin(self, memory, context):\n        return MisspeltTerm()\n"
        "class MisspeltTerm(Term):\n    def loses(self, step):\n        return {}\n"
        "misspelt = Method('misspelt', 'nothing', penalties=('misspelt',))\n"
    )
    load_plugin(file)
    with pytest.raises(PerdureError, match=r"misspelt: MisspeltTerm defines loses\(\)"):
        perdure.testing.check_method("misspelt")
