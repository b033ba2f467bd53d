"""Dask arrays: the bits do not depend on chunks, scheduler or workers."""

import numpy as np
import pytest

import tally

da = pytest.importorskip("dask.array")
import tally.dask  # noqa: E402


@pytest.mark.parametrize("op", ["sum", "mean", "var", "std", "min", "max"])
@pytest.mark.parametrize("chunks", [(7, 5), (50, 31), (1, 31), (50, 1), (13, 13)])
def test_chunks_do_not_show(rng, op, chunks):
    x = rng.standard_normal((50, 31)) * 10.0 ** rng.integers(-30, 30, (50, 31))
    d = da.from_array(x, chunks=chunks)
    for axis in (None, 0, -1, (0, 1), ()):
        for keepdims in (False, True):
            got = getattr(tally.dask, op)(d, axis=axis, keepdims=keepdims)
            want = getattr(tally, op)(x, axis=axis, keepdims=keepdims)
            assert got.shape == np.shape(want) and got.dtype == want.dtype
            assert np.array_equal(got.compute(scheduler="threads"), want)


def test_types_and_arguments(rng):
    x = rng.integers(0, 100, (20, 30))
    d = da.from_array(x, chunks=(6, 7))
    for op in ("sum", "and", "or", "xor", "nonzero", "any", "all", "norm2", "sumsq", "norm1"):
        got = tally.dask.reduce(op, d, axis=0, split_every=2).compute()
        want = tally.reduce(op, x, axis=0)
        assert np.array_equal(got, want) and got.dtype == want.dtype, op
    assert tally.dask.sum(d.astype("f4"), dtype="f8").compute().dtype == np.float64
    assert tally.dask.var(d, ddof=1).compute() == tally.var(x, ddof=1)
    for bad in ("argmax", "nonsense", "sum,mean"):
        with pytest.raises(ValueError):
            tally.dask.reduce(bad, d)
    with pytest.raises(TypeError):
        tally.dask.sum(x)


def test_distributed(rng):
    distributed = pytest.importorskip("distributed")
    x = rng.standard_normal((100, 40)) * 10.0 ** rng.integers(-30, 30, (100, 40))
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None, silence_logs=50) as cluster:
        with distributed.Client(cluster) as client:
            d = da.from_array(x, chunks=(9, 7))
            got = [client.compute(tally.dask.std(d, axis=a)).result() for a in (None, 0)]
    assert got[0] == tally.std(x) and np.array_equal(got[1], tally.std(x, axis=0))
