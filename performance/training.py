"""Training iterations: ours against one written by hand, and methods against fine-tuning."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from perdure.config import Config, build
from perdure.experiment import assemble, on_device
from perdure.hooks import Step
from perdure.learning.engine import begin_phase
from perdure.learning.learner import Learner, grow, init
from perdure.learning.phase import Phase
from perdure.learning.splits import Splits, outputs_of
from perdure.randomness import generator
from performance.clock import Job, line, seconds


def generators(*role: object) -> torch.Generator:
    """Generators of seed 0."""
    return generator(0, *role)


def setting(method: str, **values: Any) -> tuple[Config, list[Splits], Learner]:
    """Config, data and learner of a method at paper size, with few samples."""
    few = {"benchmark.train": 2000, "benchmark.val": 10, "benchmark.test": 10}
    config = build("permuted-copy", method, scale="paper", **(few | values))
    tasks, learner = assemble(config)
    return config, on_device(tasks, "cpu"), learner


def phase(method: str, old_tasks: int = 0, **values: Any) -> Phase:
    """A phase at paper size, after `old_tasks` tasks whose training is cut to one iteration each."""
    config, data, learner = setting(method, **values)
    state = init(learner)
    for task in range(old_tasks):
        one = begin_phase(learner, state, [task], data, config.training, generators)
        one.step()
        state = one.finish()
    tasks = learner.phases(len(data))[old_tasks]
    return begin_phase(learner, state, tasks, data, config.training, generators)


def by_hand() -> Job:
    """The same fine-tuning step with torch.rnn_tanh, two linear layers and Adam, nothing else."""
    (tasks, *_) = (build("permuted-copy", "fine-tuning", benchmark__train=2000).benchmark.build(),)
    x = torch.from_numpy(tasks[0].train.x).float()
    y = torch.from_numpy(tasks[0].train.y).float()
    source = torch.Generator().manual_seed(0)

    def weight(*shape: int) -> Tensor:
        return ((torch.rand(shape, generator=source) * 2 - 1) / 16).requires_grad_()

    recurrent = [weight(256, 8), weight(256, 256), weight(256), weight(256)]
    readout, readout_bias = weight(256, 256), weight(256)
    head, head_bias = weight(7, 256), weight(7)
    parameters = [*recurrent, readout, readout_bias, head, head_bias]
    optimiser = torch.optim.Adam(parameters, lr=1e-3, fused=True)

    def step() -> None:
        index = torch.randint(len(x), (128,), generator=source)
        inputs, target = x[index].transpose(0, 1), y[index].transpose(0, 1)
        start = torch.zeros(1, 128, 256)
        states, _ = torch.rnn_tanh(inputs, start, recurrent, True, 1, 0.0, True, False, False)
        outputs = functional.linear(states[-5:], readout, readout_bias).tanh()
        logits = functional.linear(outputs, head, head_bias)
        loss = functional.binary_cross_entropy_with_logits(logits, target, reduction="sum") / 128
        optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        optimiser.step()

    return step


def regulariser(tasks: int) -> Job:
    """The hypernetwork's penalty and its gradient in the last of many tasks, one old task per step."""
    few = {"benchmark.tasks": tasks, "penalties.hnet-regulariser.sample": 1, "network.heads": "single"}
    config, data, learner = setting("hnet", **few)
    outputs = outputs_of(data[:-1])
    state = grow(learner, init(learner), outputs, generators)
    last = begin_phase(learner, state, [tasks - 1], data, config.training, generators)
    term = last.terms["hnet-regulariser"]
    now = Step(0, last.active, {}, {}, {}, {}, last.optimiser.would_move)

    def step() -> None:
        term.losses(now)["hnet-regulariser"].backward()

    return step


def report() -> list[bool]:
    """Print all ratios; returns which of them are within their bounds."""
    never = {"training.validate_every": 10**9, "training.iterations": 10**6}
    times = seconds(
        {
            "by hand": by_hand(),
            "fine-tuning": phase("fine-tuning", **never).step,
            "online-ewc": phase("online-ewc", 1, **never).step,
            "si": phase("si", 1, **never).step,
            "hnet": phase("hnet", 4, **never).step,
            "coresets": phase("coresets", 4, **never).step,
            "masking": phase("masking", **never).step,
            "masking+si": phase("masking+si", 1, **never).step,
        },
        rounds=40,
    )
    plain = times["fine-tuning"]
    cost = seconds({f"{count} tasks": regulariser(count) for count in (5, 50)}, rounds=40)
    growth = cost["50 tasks"] / cost["5 tasks"]
    print(f"fine-tuning, an iteration: {1e3 * plain:.2f} ms")
    return [
        line("D: fine-tuning, Elman 256 / the step by hand (torch.rnn_tanh)", plain / times["by hand"], 0.80),
        line("online-ewc (with its orthogonal penalty) / fine-tuning", times["online-ewc"] / plain, 1.35),
        line("si (with its orthogonal penalty) / fine-tuning", times["si"] / plain, 1.35),
        line("hnet with 4 old tasks / fine-tuning", times["hnet"] / plain, 2.2),
        line("coresets with 4 old tasks / fine-tuning", times["coresets"] / plain, 2.6),
        line("fine-tuning / masking 80 %", plain / times["masking"], 4, at_least=True),
        line("fine-tuning / masking+si 80 %", plain / times["masking+si"], 3, at_least=True),
        line("regulariser of hnet with C = 1: 50 tasks / 5 tasks", growth, 1.15),
    ]
