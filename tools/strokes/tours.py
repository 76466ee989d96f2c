"""The order in which a pen visits points: nearest-neighbour tours, the best of several.

A tour always continues to a nearest point that it has not visited; ties are broken at random. The best of
TOURS tours is the one that would be shortest if it returned to its start.
"""

from __future__ import annotations

import numpy as np

from perdure.benchmarks.task import Array

TOURS = 10
"""Number of tours per image, of which the best counts."""
VISITED = np.uint16(0xFFFF)
"""A cost above all others: points within 32 x 32 pixels are at most 2 * 31^3 apart."""


def best_tours(points: Array, start: Array, draws: Array) -> Array:
    """The order [n, P] of the best tour through the points of each of n images.

    points: int [n, P, 2]; start: the first point of each image [n]; draws: what decides ties, uniform
    in [0, 1) [n, P, TOURS].
    """
    costs = cost_matrix(points)
    order = nearest_neighbour_tours(costs, start, draws)
    best = closed_lengths(costs, order).argmin(axis=1)
    chosen: Array = order[np.arange(len(order)), best]
    return chosen


def cost_matrix(points: Array) -> Array:
    """|dx|^3 + |dy|^3 between all pairs of points: uint16 [n, P, P]."""
    moves = np.abs(points[:, :, None] - points[:, None]).astype(np.uint16)
    cubes = moves * moves * moves
    costs: Array = cubes[..., 0] + cubes[..., 1]
    return costs


def nearest_neighbour_tours(costs: Array, start: Array, draws: Array) -> Array:
    """Tours [n, TOURS, P] from costs [n, P, P], start [n] and draws [n, P, TOURS]."""
    images, count = costs.shape[:2]
    tours = draws.shape[2]
    image, tour = np.arange(images)[:, None], np.arange(tours)
    order = np.zeros((images, tours, count), dtype=np.intp)
    blocked = np.zeros((images, tours, count), dtype=np.uint16)
    current = np.repeat(start[:, None], tours, axis=1)
    for step in range(count):
        order[..., step] = current
        if step == count - 1:
            break
        blocked[image, tour, current] = VISITED
        ahead = costs[image, current]
        ahead |= blocked
        near = ahead == ahead.min(axis=2, keepdims=True)
        current = _drawn(near, draws[:, step])
    return order


def _drawn(near: Array, draws: Array) -> Array:
    """One of the points [n, tours, P] that are near, each as likely as the others: [n, tours]."""
    ties = np.count_nonzero(near, axis=2)
    chosen: Array = near.argmax(axis=2)
    several = ties > 1
    rank = (draws[several] * ties[several]).astype(np.intp)
    chosen[several] = (near[several].cumsum(axis=1) > rank[:, None]).argmax(axis=1)
    return chosen


def closed_lengths(costs: Array, order: Array) -> Array:
    """The cost [n, tours] of tours [n, tours, P], including the way back to the start."""
    image = np.arange(len(order))[:, None, None]
    steps = costs[image, order, np.roll(order, -1, axis=2)]
    lengths: Array = steps.sum(axis=2, dtype=np.int64)
    return lengths
