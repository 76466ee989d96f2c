"""Stroke digits arrive in pairs: first 0 and 1, then 2 and 3, ...; nobody says which pair a digit is from.

The pen strokes are included with Perdure.
"""

import numpy as np

import perdure

tasks = perdure.build("smnist", "coresets", benchmark__train=1000, benchmark__test=200).benchmark.build()
learner = perdure.ContinualLearner("coresets", network={"cell": "lstm", "hidden": 64}, verbose=0)
held_out = {}
for task in tasks:
    digits = np.array(task.name.split()[1::2])  # 'digits 0 and 1': these are its classes
    learner.learn(task.name, task.train.x, digits[task.train.y], lengths=task.train.lengths)
    strokes = [one[:length] for one, length in zip(task.test.x, task.test.lengths, strict=True)]
    held_out[task.name] = strokes, digits[task.test.y]
    print(f"after {task.name}:", {name: round(score) for name, score in learner.score(held_out).items()})

for steps, right in learner.inference_curve(held_out, [1, 3, 6, 12]).items():
    print(f"the pair, from the first {steps} pen moves: {right:.0f} %")

strokes = [one for x, _ in held_out.values() for one in x]
wanted = np.concatenate([digits for _, digits in held_out.values()])
found = learner.predict(strokes)
print(f"digits without naming the pair: {100 * (found == wanted).mean():.0f} %, for example")
some = np.random.default_rng(0).choice(len(wanted), 12, replace=False)
print("  predicted", *found[some], "\n  true     ", *wanted[some])
