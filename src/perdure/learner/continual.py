"""ContinualLearner: learn / predict / score / save / load, for your own sequences, task by task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import numpy as np

from perdure.errors import PerdureError
from perdure.learner.answers import read_answers
from perdure.learner.checkpoints import CheckpointFile, checkpoint_path, lesson_digest
from perdure.learner.classes import Owner
from perdure.learner.display import html
from perdure.learner.faults import an_instance, for_python, naming, part_of, writing, wrong, wrong_type
from perdure.learner.forms import read_given, read_questions
from perdure.learner.inference import Criterion, curve, infer, owners_of, something_learnt
from perdure.learner.knowledge import Given, Knowledge, Rules, nothing_learnt, prepare
from perdure.learner.lessons import Teaching, teach
from perdure.learner.observing import STREAM, Watching, as_samples, check_stream, observe_all
from perdure.learner.prediction import check_lengths, known_task, logits_of, mixed, network_of
from perdure.learner.saving import read_learner, write_learner
from perdure.learner.sequences import Inputs
from perdure.learner.settings import PARAMETERS, configured, written
from perdure.learner.streams import Streams, begun, read_step
from perdure.learning.evaluate import evaluate

Options = Mapping[str, Any] | None


class ContinualLearner:
    """Learns tasks one after the other, as their sequences arrive, and keeps what it has learnt.

    Any method of Perdure can be chosen by its name; combinations and plugins work too. Sequences are
    arrays or tensors [N, T, F], lists of [T_i, F], data sets or loaders of torch, or frames in long format.
    Inputs are scaled as the first task's are; a tenth of the sequences validate, and stop training early.

    >>> import numpy as np, perdure, tempfile
    >>> folder = tempfile.mkdtemp() + "/model"
    >>> x, x2 = np.random.default_rng(0).normal(size=(2, 80, 6, 3))
    >>> y, y2 = np.where(x[:, :, 0].mean(1) > 0, "up", "down"), np.where(x2[:, :, 1].mean(1) > 0, 1, 2)
    >>> network, training = {"cell": "lstm", "hidden": 8}, {"iterations": 40}
    >>> learner = perdure.ContinualLearner(method="hnet", network=network, training=training, verbose=0)
    >>> learner = learner.learn("march", x, y)
    >>> learner.predict(x, task="march").shape
    (80,)
    >>> scores = learner.score({"march": (x, y)}); saved = learner.save(folder)
    >>> later = perdure.ContinualLearner.load(folder).learn("april", x2, y2)
    >>> later.tasks, later.classes("april")
    (['march', 'april'], (1, 2))
    """

    def __init__(  # noqa: PLR0913 - an estimator, as in scikit-learn
        self,
        method: str = "hnet",
        *,
        network: Options = None,
        training: Options = None,
        options: Options = None,
        target: str = "auto",
        validation: float = 0.1,
        standardise: bool = True,
        seed: int = 0,
        verbose: int = 1,
        callbacks: Sequence[Any] = (),
    ) -> None:
        """Choose a method and settings; nothing is learnt yet.

        `network` and `training` are sections of options, such as {"cell": "lstm", "hidden": 64}; `options`
        are any others by dotted name, such as {"penalties.online-ewc.strength": 1e3}. `target` is what is
        predicted: label, tags, bits, value, or auto (by shape and type of y). `verbose=0` is silent.
        """
        self.method, self.network, self.training, self.options = method, network, training, options
        self.target, self.validation, self.standardise = target, validation, standardise
        self.seed, self.verbose, self.callbacks = seed, verbose, callbacks
        self._config = configured(self.get_params())
        self._knowledge: Knowledge | None = None
        self._streams: dict[str, Streams] = {}
        self._waiting: Watching | None = None

    @property
    def tasks(self) -> list[str]:
        """Names of the tasks that can be asked, in the order in which they arrived."""
        known = self._knowledge
        return [] if known is None else [name for name in known.tasks if name not in known.forgotten]

    def classes(self, task: str) -> tuple[Any, ...]:
        """The classes of a task, in the order of the columns of `predict_proba`."""
        task = known_task(self._knowledge, task)
        assert self._knowledge is not None
        return self._knowledge.formats[task].classes

    def learn(
        self,
        task: str,
        x: Any,
        y: Any = None,
        *,
        lengths: Any = None,
        validation: tuple[Any, Any] | None = None,
        checkpoint: Path | str | None = None,
    ) -> Self:
        """Learn a task, or go on with a known one; if anything is wrong, the learner stays as it was.

        `validation` is a pair (x, y) to use instead of a fraction of the sequences. With a `checkpoint`, a
        file, learning that is interrupted goes on from there when it is called again with the same data.
        """
        if not isinstance(task, str) or not task:
            raise wrong_type(
                "task",
                f"it is {an_instance(task)}, not a name such as 'march'; the order is learn(task, x, y).",
            )
        known = self._knowledge
        features, names = (None, None) if known is None else (known.inputs, known.features)
        given = read_given(x, y, lengths, features, names)
        held_out = None if validation is None else self._held_out(validation, given)
        lesson = prepare(known, task, given, held_out, self._rules)
        before = known or nothing_learnt(self._config, given.inputs.x.shape[2], lesson.scaling)
        self._knowledge = self._teach(before, lesson, checkpoint)
        self._streams = {}
        return self

    @property
    def _rules(self) -> Rules:
        single = self._config.network.heads == "single"
        return Rules(self.target, self.validation, self.standardise, self.seed, single)

    def _teach(self, before: Knowledge, lesson: Any, checkpoint: Path | str | None) -> Knowledge:
        """Carry out a lesson, with a progress bar unless silent."""
        from perdure.learner.telling import Teller

        path = checkpoint_path(checkpoint)
        digest = "" if path is None else lesson_digest(self._config, before, lesson)
        store = CheckpointFile(path, digest).open()
        with Teller(self.verbose, self.callbacks, before, lesson) as teller:
            with for_python():
                after = teach(self._config, before, lesson, Teaching(teller.show, teller.stopped, store))
            teller.done(after)
        store.remove()
        return after

    def _held_out(self, validation: Any, given: Given) -> Given:
        if not isinstance(validation, tuple) or len(validation) != 2:
            raise wrong_type(
                "validation",
                "give a pair (x, y) of sequences to validate on; what fraction is held out without one is "
                "said when the learner is made, such as ContinualLearner(validation=0.1).",
            )
        with part_of("validation"), naming("x"):
            return read_given(*validation, None, given.inputs.x.shape[2], given.features)

    def predict(self, x: Any, *, task: str | None = None, lengths: Any = None) -> Any:
        """The most likely answers, in the form of the task's y; without a task, that is inferred."""
        if task is None:
            return self._predict_inferred(x, lengths)
        knowledge, inputs = self._asked(x, task, lengths)
        return knowledge.formats[task].predicted(logits_of(self._config, knowledge, task, inputs), inputs)

    def predict_proba(self, x: Any, *, task: str | None = None, lengths: Any = None) -> Any:
        """The probabilities of a task's classes [N, C], with a column for each of `classes(task)`.

        For tags [N, T, C]; for bits the probabilities that they are 1.
        """
        if task is None:
            raise wrong(
                "task", "probabilities refer to the classes of one task; name it, or call infer_task."
            )
        knowledge, inputs = self._asked(x, task, lengths)
        return knowledge.formats[task].probabilities(logits_of(self._config, knowledge, task, inputs), inputs)

    def _asked(self, x: Any, task: Any, lengths: Any) -> tuple[Knowledge, Inputs]:
        """What is known, and sequences for a known task."""
        known_task(self._knowledge, task)
        knowledge = self._knowledge
        assert knowledge is not None
        inputs = read_questions(x, lengths, knowledge.inputs, knowledge.features).inputs
        check_lengths(knowledge, task, inputs)
        return knowledge, inputs

    def score(self, x: Any, y: Any = None, *, task: str | None = None, lengths: Any = None) -> Any:
        """The score of a task in percent (accuracy, or R² for values); of several, given {task: (x, y)}.

        Scores are noted down with what had been learnt by then; the accuracy matrix shows them.
        """
        if isinstance(x, Mapping):
            if not x:
                raise wrong("x", "no task is given; write {task: (x, y)}.")
            found = {name: self._score(name, *self._pair(pair)) for name, pair in x.items()}
            self._note(found)
            return found
        if task is None:
            raise wrong("task", "name the task, or write score({task: (x, y)}).")
        found = {task: self._score(task, x, y, lengths)}
        self._note(found)
        return found[task]

    def _pair(self, pair: Any) -> tuple[Any, Any]:
        if isinstance(pair, tuple) and len(pair) == 2:
            return pair
        return pair, None  # a data set, a loader or a frame

    def _score(self, task: Any, x: Any, y: Any, lengths: Any = None) -> float:
        known_task(self._knowledge, task)
        knowledge = self._knowledge
        assert knowledge is not None
        given = read_given(x, y, lengths, knowledge.inputs, knowledge.features)
        check_lengths(knowledge, task, given.inputs)
        form = knowledge.formats[task]
        _, coded = read_answers(given.y, given.inputs, form.kind, form, Owner(f"task '{task}'"))
        if not form.target.asked(coded).any():
            raise wrong("y", "every target is to be ignored; give at least one to score.")
        network, weights = network_of(self._config, knowledge, task)
        data = knowledge.data(task, given.inputs, coded)
        return evaluate(network, weights, data, knowledge.number(task)).accuracy

    def _note(self, scores: Mapping[str, float]) -> None:
        assert self._knowledge is not None
        noted = (*self._knowledge.scores, (len(self._knowledge.visits), dict(scores)))
        self._knowledge = replace(self._knowledge, scores=noted)

    def _predict_inferred(self, x: Any, lengths: Any) -> Any:
        """Each sequence's answer by the task to which it seems to belong."""
        knowledge = something_learnt(self._knowledge)
        if len(self.tasks) == 1:  # there is nothing to infer
            return self.predict(x, task=self.tasks[0], lengths=lengths)
        inputs = read_questions(x, lengths, knowledge.inputs, knowledge.features).inputs
        owners = owners_of(self._config, knowledge, inputs)
        answers: dict[str, Any] = {}
        for name in dict.fromkeys(owners.tolist()):
            some = inputs.take(np.flatnonzero(owners == name))
            logits = logits_of(self._config, knowledge, name, some)
            answers[name] = knowledge.formats[name].predicted(logits, some)
        return mixed(answers, owners.tolist())

    def forget(self, task: str) -> Self:
        """Forget a task: what only it has is removed, as far as the method has such a part.

        Refused with a reason where tasks share all their weights and nothing of one can be removed.
        """
        from perdure.learner.forgetting import forgotten

        task = known_task(self._knowledge, task)
        assert self._knowledge is not None
        self._knowledge = forgotten(self._config, self._knowledge, task)
        self._streams = {}
        return self

    def infer_task(
        self, x: Any, *, lengths: Any = None, steps: int | None = None, by: Criterion = "auto"
    ) -> Any:
        """The task [N] to which each sequence seems to belong, from its first `steps` (default: all).

        By the lowest predictive entropy or, for methods with decoders, the best reconstruction (`by`).
        """
        return infer(self._config, self._knowledge, x, lengths, steps, by)

    def inference_curve(
        self, x: Mapping[str, Any], steps: Sequence[int], *, by: Criterion = "auto"
    ) -> dict[int, float]:
        """Percent of sequences whose task is inferred from their first steps alone, by number of steps.

        They are given as {task: x}, or {task: (x, y)} as for `score`.
        """
        return curve(self._config, self._knowledge, x, steps, by)

    def step(self, x: Any, *, task: str | None = None) -> Any:
        """The answers of a task's streams after one more step x [N, F] of each (or [F] of one).

        What `predict(so_far, task=task)` answers at the last step: states are kept, for each task its own,
        until `reset`, `learn` or `forget` begins all streams again. With one task it need not be named.
        """
        if task is None and len(self.tasks) == 1:
            (task,) = self.tasks
        task = known_task(self._knowledge, task)
        assert self._knowledge is not None
        streams = self._streams.get(task)
        rows = read_step(x, self._knowledge.inputs, None if streams is None else streams.count)
        if streams is None:
            streams = self._streams[task] = Streams(self._config, self._knowledge, task, len(rows))
        return streams.answers(streams.step(rows))

    def reset(self, streams: Any = None, *, task: str | None = None) -> Self:
        """Put streams back to their start: some of a task's, by number, all of a task's, or all there are."""
        if task is not None:
            task = known_task(self._knowledge, task)
        if streams is None:
            self._streams = {name: each for name, each in self._streams.items() if task not in (None, name)}
        else:
            begun(self._streams, task).reset(streams)
        return self

    def observe(self, x: Any, y: Any, *, lengths: Any = None, every: int = 200, drift: bool = True) -> Self:
        """Learn from a stream without task boundaries; each sample is predicted before it is learnt.

        Samples are learnt whenever `every` of them wait. If the errors rise (`drift`), a new segment begins,
        and the method protects what was learnt before. Needs network={"heads": "single"} and one class per
        sequence; the first `every` samples must have all classes. `prequential` is the accuracy so far.
        """
        if not self._rules.single:
            raise wrong("network", "a stream has one head for all it meets; use network={'heads': 'single'}.")
        if self._waiting is None and self._knowledge is not None:
            raise wrong("x", "this learner has learnt tasks; observe streams with a new one.")
        known = self._knowledge
        given = read_given(x, y, lengths, known.inputs if known else None, None)
        check_stream(given.y, len(given.inputs), self.target)
        if known is not None:
            form = next(iter(known.formats.values()))
            read_answers(given.y, given.inputs, form.kind, form, STREAM)
        samples = as_samples(given.inputs.x, given.inputs.lengths, given.y)
        try:
            self._waiting = observe_all(self, self._waiting or Watching(), samples, every, drift)
        except BaseException:
            self._knowledge = known  # lessons learnt on the way would otherwise be learnt twice
            raise
        if self._knowledge is not None:
            self._knowledge = replace(self._knowledge, watching=self._waiting)
        return self

    @property
    def prequential(self) -> dict[str, float | int | list[int] | None]:
        """Of the observed stream: samples, accuracy so far and of late in percent, segments, changes."""
        return (self._waiting or Watching()).told()

    def export(self, path: Path | str, *, task: str) -> Path:
        """Write a task's network to a file for other programs: .onnx (ONNX) or .pt (TorchScript).

        It maps x [N, T, F] and lengths [N] to probabilities, or values in their own units; scaling and
        generated weights are written out. Class names are in its notes.
        """
        from perdure.learner.export import export

        known_task(self._knowledge, task)
        assert self._knowledge is not None
        return export(self._config, self._knowledge, task, Path(path))

    def save(self, folder: Path | str) -> Path:
        """Write the learner to a folder: readable JSON, and safetensors; returns the folder."""
        path = _folder(folder)
        if self._knowledge is None and self._waiting is not None:
            raise wrong("folder", "the stream's first samples have not been learnt yet; save after that.")
        with writing("folder", path):
            write_learner(path, written(self.get_params()), self._config, self._knowledge)
        return path

    @classmethod
    def load(cls, folder: Path | str) -> Self:
        """The learner that was saved in a folder; it goes on as if it had never been saved."""
        path = _folder(folder)
        parameters, config, knowledge = read_learner(path)
        try:
            learner = cls(**parameters)
        except PerdureError as error:
            said = f"'{path / 'learner.json'}' has a wrong parameter ({str(error).rstrip('.')})."
            raise wrong("folder", said) from None
        learner._config, learner._knowledge = config, knowledge
        learner._waiting = None if knowledge is None else knowledge.watching
        return learner

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters of the constructor, as scikit-learn's estimators have them."""
        del deep
        return {name: getattr(self, name) for name in PARAMETERS}

    def set_params(self, **parameters: Any) -> Self:
        """Change parameters; once something has been learnt, only `verbose` and `callbacks`."""
        for name in parameters:
            if name not in PARAMETERS:
                raise wrong(name, f"there is no such parameter; there are {', '.join(PARAMETERS)}.")
            if self._knowledge is not None and name not in ("verbose", "callbacks"):
                raise wrong(name, "it cannot change after something has been learnt; start a new learner.")
        changed = type(self)(**{**self.get_params(), **parameters})
        for name in parameters:
            setattr(self, name, parameters[name])
        if self._knowledge is None:
            self._config = changed._config
        return self

    def _repr_html_(self) -> str:
        """In a notebook: the accuracy matrix and forgetting."""
        return html(repr(self), self._knowledge)

    def __repr__(self) -> str:
        """As the constructor is called, and the tasks learnt so far."""
        default = type(self)
        given = ", ".join(
            f"{name}={value!r}"
            for name, value in self.get_params().items()
            if name == "method" or value != DEFAULTS[name]
        )
        learnt = ", ".join(self.tasks) or "nothing learnt yet"
        return f"{default.__name__}({given})  # {learnt}"


DEFAULTS: dict[str, Any] = dict(ContinualLearner.__init__.__kwdefaults__ or {})
"""Default values of the constructor's parameters."""


def _folder(folder: Any) -> Path:
    if not isinstance(folder, (str, Path)) or not str(folder):
        raise wrong_type("folder", f"it is {folder!r}; give the path of a folder.")
    return Path(folder).expanduser()
