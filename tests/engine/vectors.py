"""Random arrays of vectors: segments and groups along an axis, of random strides, with masks, and places for the results."""

import numpy as np

import shapes as t

IDS = ["i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"]


def random_array(type, rng, py, elements, kinds, most):
    """An array with an axis of some length, of random strides: turned, cut, broadcast, backwards."""
    dims = py.randint(1, 4)
    shape = [0 if py.random() < 0.03 else py.choice([1, 2, 3, 5, 17, 33]) for _ in range(dims)]
    axis = py.randrange(dims)
    shape[axis] = py.choice([0, 1, 2, 7, 40, 40, 130, 130, 130])
    while np.prod(shape) > most:
        d = py.randrange(dims)
        if d != axis:
            shape[d] = py.randint(1, 8)
        elif py.random() < 0.2:
            shape[d] = 40
    x = elements(type, shape, rng, py.choice(kinds))
    order = py.sample(range(dims), dims) if py.random() < 0.6 else list(range(dims))
    x = x.transpose(order)
    axis = order.index(axis)
    x = x[tuple(slice(None, None, py.choice([1, 1, 1, -1, 2, -2])) for _ in range(dims))]
    if py.random() < 0.15:
        d = py.randrange(dims)
        x = np.broadcast_to(x[tuple(slice(0, 1) if i == d else slice(None) for i in range(dims))],
                            x.shape[:d] + (py.randint(1, 5) if x.shape[d] else 0,) + x.shape[d + 1:])
    return x, axis


def random_ids(rng, py, n, count, outside):
    low, high = (-3, count + 2) if outside else (0, count - 1)
    ids = rng.integers(low, high, n, endpoint=True) if high >= low else np.empty(0, np.int64)
    if py.random() < 0.3 and n:  # most belong to one
        ids[rng.random(n) < 0.9] = ids[0]
    if py.random() < 0.2:
        ids.sort()
    kind = py.choice(IDS)
    info = np.iinfo(t.DTYPE[kind])
    return np.clip(ids, info.min, info.max).astype(t.DTYPE[kind])


def random_offsets(rng, py, n, count):
    cuts = np.sort(rng.integers(0, n, count + 1, endpoint=True))
    if py.random() < 0.4:
        cuts[0], cuts[-1] = 0, n
    if py.random() < 0.2:
        cuts[:] = cuts[0]
    return cuts.astype(py.choice([np.int32, np.int64]))


def members(cuts, count, ids):
    """Of each part the places along the axis."""
    if ids is None:
        return [np.arange(cuts[i], cuts[i + 1]) for i in range(count)]
    return [np.flatnonzero(ids.astype(np.int64) == g) for g in range(count)]


class Drawn:
    """An array x, for dot y, a mask or None; the axis, and along it the places of each part; the shape without dimensions;
    where results lie."""


def drawn(type, rng, py, elements, kinds, most=4000):
    v = Drawn()
    v.x, v.axis = random_array(type, rng, py, elements, kinds, most)
    n = v.x.shape[v.axis]
    v.y = v.x[::-1] if py.random() < 0.5 else np.ascontiguousarray(v.x)
    v.mask = v.at = v.out_stride = v.room = None
    if py.random() < 0.4:
        v.mask = (rng.random(v.x.shape) < py.choice([0.1, 0.5, 0.9])).astype(np.uint8)
        if py.random() < 0.3:
            one = tuple(slice(0, 1) if d != v.axis else slice(None) for d in range(v.x.ndim))
            v.mask = np.broadcast_to(v.mask[one], v.x.shape)
    count = py.choice([1, 2, 3, 9, 40, 150])
    if py.random() < 0.3:  # the results' axes in another order, with gaps
        lengths = t.results_along(v.x, v.axis, count)
        order = py.sample(range(len(lengths)), len(lengths))
        at = np.arange(int(np.prod(lengths)) * 2).reshape([lengths[d] for d in order] + [2])[..., 0].transpose(np.argsort(order))
        v.out_stride, v.at, v.room = t.strides(at), at.ravel(), 2 * at.size
    v.of_groups = py.random() < 0.5
    if v.of_groups:
        outside = py.random() < 0.3
        ids = random_ids(rng, py, n, count, outside)
        rises = bool(n and (np.diff(ids.astype(np.int64)) >= 0).all())
        v.shape, v.places = t.groups_shape(n, ids, count, None, outside, rises), members(None, count, ids)
    else:
        cuts = random_offsets(rng, py, n, count)
        v.shape, v.places = t.segments_shape(n, cuts), members(cuts, count, None)
    return v
