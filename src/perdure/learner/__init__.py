"""A learner for your own sequences: learn task by task, predict, save, go on next month."""
