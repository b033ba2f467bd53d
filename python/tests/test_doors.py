"""What stands between people's data and the engine: each door keeps all that an array is, or refuses it, and says how to go on."""

import decimal
import importlib
import math
import resource
import subprocess
import sys
import types
from fractions import Fraction

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

import tally
from exact import rounded

ONES = np.ones(2)


class Unit(np.ndarray):
    """A subclass with a unit, which NumPy's documentation writes so."""

    def __new__(cls, x, unit="m"):
        made = np.asarray(x).view(cls)
        made.unit = unit
        return made

    def __array_finalize__(self, other):
        self.unit = getattr(other, "unit", None)


class Tagged(np.ndarray):
    """A subclass that says nothing, whose arrays have attributes."""


class Duck:
    """Another type than ndarray, with a meaning of its own."""

    def __array_ufunc__(self, *_, **__):
        return NotImplemented

    def __array__(self, dtype=None, copy=None):
        return np.ones(2)


class Masking:
    """An object whose __array__ is masked, as netCDF4's variables are."""

    def __array__(self, dtype=None, copy=None):
        return np.ma.masked_array([1.0, 2.0], [False, True])


class Beside:
    """An object with a mask beside its numbers."""

    mask = np.array([False, True])

    def __array__(self, dtype=None, copy=None):
        return np.ones(2)


def tagged():
    x = np.ones(2).view(Tagged)
    x.unit = "m"
    return x


def more_than_numbers():
    """Arrays of two elements that are more than these."""
    yield "masked", np.ma.masked_array([1.0, 2.0], [False, True])
    yield "masked in a list", [np.ma.masked_array([1.0, 2.0], [False, True]), ONES]
    yield "the masked constant", [1.0, np.ma.masked]
    yield "masked by __array__", Masking()
    yield "a mask beside", Beside()
    yield "a unit", Unit([1.0, 2.0])
    yield "units in a list", [Unit([1.0, 2.0])]
    yield "a unit by attribute", tagged()
    yield "a type of its own", Duck()
    yield "matrix", np.matrix([[1.0, 2.0]])
    pandas, pyarrow, polars, dask_array, xarray = map(imported, ("pandas", "pyarrow", "polars", "dask.array", "xarray"))
    if pandas:
        for missing in ([1, None], [1.5, None], [True, None]):
            kind = {int: "Int64", float: "Float64", bool: "boolean"}[type(missing[0])]
            yield f"pandas.array {kind}", pandas.array(missing, dtype=kind)
            yield f"Series {kind}", pandas.Series(missing, dtype=kind)
            yield f"Index {kind}", pandas.Index(missing, dtype=kind)
            yield f"DataFrame {kind}", pandas.DataFrame({"a": pandas.array(missing, dtype=kind)})
            yield f"a list of {kind}", [pandas.array(missing, dtype=kind)]
        yield "categories", pandas.Series([1, 2], dtype="category")
    if pyarrow:
        yield "Arrow's nulls", pyarrow.array([1.0, None])
        yield "an extension type", pyarrow.ExtensionArray.from_storage(pyarrow.bool8(), pyarrow.array([1, 0], pyarrow.int8()))
    if pandas and pyarrow:
        yield "nulls of ArrowDtype", pandas.Series([1, None], dtype="int64[pyarrow]")
    if polars:
        yield "polars' nulls", polars.Series([1.0, None])
        yield "nulls within", polars.Series([[1, None], [2, 3]], dtype=polars.Array(polars.Int64, 2))
    if dask_array:
        yield "masked chunks", dask_array.from_array(np.ma.masked_array([1.0, 2.0], [False, True]), chunks=1)
    if xarray:
        yield "a unit in xarray", xarray.DataArray(Unit([1.0, 2.0]))
        yield "a unit in a variable", xarray.Variable("x", Unit([1.0, 2.0]))
    if imported("astropy.table"):
        import astropy.table
        import astropy.units
        yield "astropy", [1.0, 2.0] * astropy.units.m
        yield "astropy's mask and unit", astropy.table.MaskedColumn([1.0, 2.0], mask=[False, True], unit="m")
        yield "astropy's data", imported("astropy.nddata").CCDData([1.0, 2.0], unit="adu")
        yield "astropy's uncertainty", imported("astropy.nddata").NDDataArray([1.0, 2.0], uncertainty=imported("astropy.nddata").StdDevUncertainty([1, 1]))
        yield "astropy's column", astropy.table.Column([1.0, 2.0], unit="m")
    if imported("pint"):
        yield "pint", imported("pint").UnitRegistry().Quantity([1.0, 2.0], "m")


def imported(name):
    """A module, or None where it is not here."""
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


DOORS = {
    **{name: getattr(tally, name) for name in ("sum prod min max minmax argmin argmax mean var std norm sumsq count_nonzero any all "
                                               "describe").split()},
    "sum, axis": lambda x: tally.sum(x, axis=0), "dot": lambda x: tally.dot(ONES, x), "vecdot": lambda x: tally.vecdot(x, ONES),
    "reduce": lambda x: tally.reduce("count,mean", x), "segment": lambda x: tally.segment("sum", x, 1),
    "group": lambda x: tally.group("sum", x, [0, 0]), "ids": lambda x: tally.group("sum", ONES, x),
    "offsets": lambda x: tally.segment("sum", ONES, x), "State": lambda x: tally.State("sum").update(x),
    "State, y": lambda x: tally.State("dot").update(ONES, x), "Groups": lambda x: tally.Groups("sum", 1).update(x, [0, 0]),
    "Groups, ids": lambda x: tally.Groups("sum", 1).update(ONES, x), "where": lambda x: tally.sum(ONES, where=x),
    "mean=": lambda x: tally.var(ONES, mean=x), "group, where": lambda x: tally.group("sum", ONES, [0, 0], where=x),
    "a list": lambda x: tally.sum([x, x]), "initial": lambda x: tally.sum(ONES, initial=x), "words": lambda x: tally.State("sum").from_words(x),
    "fill_value": lambda x: tally.segment("min", ONES, [0, 0, 2], fill_value=x)}


@pytest.mark.filterwarnings("ignore:the matrix subclass:PendingDeprecationWarning", "ignore:The unit of the quantity is stripped")
@pytest.mark.parametrize("door", DOORS)
def test_no_door_loses_what_an_array_is(door):
    for what, x in more_than_numbers():
        with pytest.raises(TypeError) as caught:
            print(what, DOORS[door](x))
        assert "\n" not in str(caught.value) and len(str(caught.value)) > 30, (what, caught.value)


def test_no_chunk_loses_what_it_is():
    """Chunks are looked at when they are there: dask may not know what they are."""
    da = pytest.importorskip("dask.array")
    import tally.dask
    x = da.from_array(np.arange(10.0), chunks=5)
    for change in (lambda b: np.ma.masked_array(b, b < 4), Unit):
        for chunks in (5, 10):
            y = x.rechunk(chunks).map_blocks(change, meta=np.empty(0))
            for call in (tally.dask.sum, tally.mean, tally.max):
                with pytest.raises(TypeError):
                    call(y).compute(scheduler="sync")
    wider = da.from_array(np.array([2**53 + 1, 1]), chunks=1).map_blocks(lambda b: b, meta=np.empty(0))
    with pytest.raises(TypeError, match="exactly"):
        tally.dask.sum(wider).compute(scheduler="sync")


def test_no_tensor_loses_its_mask(monkeypatch):
    """Subclasses of torch.Tensor with a meaning of their own, as torch.masked has them; by a double of torch."""

    class Tensor:
        is_cuda = requires_grad = False

        @classmethod
        def __torch_function__(cls, *_):
            return NotImplemented

        def __dlpack_device__(self):
            return 1, 0

        def __dlpack__(self, **_):
            raise BufferError("this far it may come")

        detach, is_conj, is_neg = (lambda self: self), (lambda self: False), (lambda self: False)

    class MaskedTensor(Tensor):
        @classmethod
        def __torch_function__(cls, *_):
            return NotImplemented

    monkeypatch.setitem(sys.modules, "torch", types.SimpleNamespace(Tensor=Tensor, is_grad_enabled=lambda: True))
    for door in (tally.sum, tally.State("sum").update, lambda x: tally.group("sum", x, [0])):
        with pytest.raises(TypeError, match="a MaskedTensor is more than its numbers"):
            door(MaskedTensor())
        for kind in (Tensor, type("Plain", (Tensor,), {})):
            with pytest.raises(TypeError, match="this far"):
                door(kind())


def test_what_is_numbers_alone_is_taken():
    pandas, pyarrow, xarray = map(imported, ("pandas", "pyarrow", "xarray"))
    arrays = []
    if pandas and pyarrow and xarray:
        arrays = [pandas.array([1, 2]), pandas.Index([1, 2]), pandas.Series([1, 2], dtype="Int64"), pandas.Series([1, 2], dtype="int64[pyarrow]"),
                  pandas.DataFrame({"a": [1], "b": pandas.array([2], dtype="Int64")}), pandas.DataFrame({"a": [1], "b": [2.0]}),
                  pandas.DataFrame({"a": [2], "b": [True]}), pandas.Series(pandas.arrays.SparseArray([0, 3])), pandas.RangeIndex(1, 3), xarray.DataArray([1, 2]), xarray.Variable("x", [1.0, 2.0]), [np.array(1), pandas.array([2])[0]]]
    for x in (np.ma.masked_array([1.0, 2.0]), np.ma.masked_array([1.0, 2.0], [False, False]), ONES.view(Tagged) * [1, 2],
              range(1, 3), [np.int8(1), 2.0], *arrays):
        assert tally.sum(x) == 3 and type(tally.sum(x)) in (np.float64, np.int64)


def test_labels_that_differ():
    """Elements are paired by their places: where both arrays have labels, these are the same."""
    pandas, xarray = pytest.importorskip("pandas"), pytest.importorskip("xarray")

    def frame(x, index):
        return pandas.DataFrame(np.stack([x, x], 1), index=index)

    def array(x, index):
        return xarray.DataArray(x, dims=["d"], coords={"d": index})

    x, y, ids = np.array([1.0, 2.0]), np.array([1.0, 3.0]), np.array([0, 1])
    calls = {
        "dot": lambda m, i, j: tally.dot(m(x, i), m(y, j)), "vecdot": lambda m, i, j: tally.vecdot(m(x, i), m(y, j)),
        "group": lambda m, i, j: tally.group("sum", m(x, i), m(ids, j)), "where": lambda m, i, j: tally.sum(m(x, i), where=m(ids > 0, j)),
        "State": lambda m, i, j: tally.State("dot").update(m(x, i), m(y, j)).value(), "mean=": lambda m, i, j: tally.var(m(x, i), axis=(), mean=m(y, j)),
        "Groups": lambda m, i, j: tally.Groups("sum", 2).update(m(x, i), m(ids, j)).value(), "list": lambda m, i, j: tally.sum([m(x, i), m(y, j)], axis=0),
        "group, where": lambda m, i, j: tally.group("sum", m(x, i), ids, where=m(ids > 0, j)),
        "Groups, where": lambda m, i, j: tally.Groups("sum", 2).update(m(x, i), ids, where=m(ids > 0, j)).value(),
        "reduce": lambda m, i, j: tally.reduce("sum", m(x, i), where=m(ids > 0, j))}
    for what, call in calls.items():
        want = call(lambda a, _: a, 0, 0)
        for make in (pandas.Series, array):
            assert np.array_equal(call(make, [0, 1], [0, 1]), want) and np.array_equal(call(make, ["a", "b"], ["a", "b"]), want), what
            with pytest.raises(ValueError, match="labels.*to_numpy"):
                print(what, call(make, [0, 1], [1, 0]))
        assert np.array_equal(call(lambda a, i: pandas.Series(a, i) if i else a, None, [1, 0]), want)  # one of them has none
    assert np.array_equal(tally.group("sum", frame(x, [0, 1]), pandas.Series(ids, [0, 1]), axis=0), [[1, 1], [2, 2]])
    assert np.array_equal(tally.dot(frame(x, [7, 8]), pandas.Series(y, [0, 1])), [4, 8])  # columns are 0 and 1
    turned = xarray.DataArray(np.eye(2) > 0, dims=["b", "a"])
    for bad in (lambda: tally.group("sum", frame(x, [0, 1]), pandas.Series(ids, [1, 0]), axis=0),
                lambda: tally.dot(frame(x, [7, 8]), pandas.Series(y, [7, 8])), lambda: tally.sum(frame(x, [0, 1]), where=frame(x > 1, [1, 0])),
                lambda: tally.sum(turned.transpose(), where=turned)):
        with pytest.raises(ValueError, match="labels.*to_numpy"):
            bad()


# ---- out= ------------------------------------------------------------------------------------------------------------


def test_out_is_rounded_once():
    third = [1, 2.0**-24, 2.0**-60]  # next to a tie of float32, which float64 does not show
    want = np.float32(1 + 2.0**-23)
    for call in (lambda out, **more: tally.sum(third, out=out, **more), lambda out, **more: tally.reduce("sum", third, out=out, **more),
                 lambda out, **more: tally.dot(third, [1.0] * 3, out=out, **more), lambda out, **more: tally.mean(np.array(third) * 3, out=out, **more),
                 lambda out, **more: tally.sum([third] * 3, axis=1, out=np.empty(3, out.dtype), **more)[1]):
        for dtype in ("f4", ">f4", "c8"):
            assert call(np.empty((), dtype)) == want
    assert tally.sum(np.array(third) + 0j, out=np.empty((), "c8")) == want
    assert tally.sum(third, dtype="f8", out=np.empty((), "f4")) == want
    assert tally.var([0.0, 2 + 2.0**-23 + 2.0**-54], out=np.empty((), "f4")) == rounded((Fraction(2) + Fraction(1, 2**23) + Fraction(1, 2**54))**2 / 4, "f4")
    assert tally.sum(np.array([2**63 - 1] * 4), out=np.empty(())) == 2.0**65  # beyond 64 bits
    small = np.array([1, 2.0**-24], "f4")
    assert tally.sum(small, out=np.empty(())) == 1  # rounded to the elements' type, which the result has


@given(st.sampled_from(["sum", "prod", "sumsq", "min", "max", "dot", "reduce"]), st.sampled_from(["i8", "i4", "u8", "u1", "?"]),
       st.sampled_from(["i1", "i2", "i4", "i8", "u1", "u4", "u8", ">i2"]), st.data())
def test_integers_fit_out_or_raise(op, kind, out_kind, data):
    limits = np.iinfo(kind) if kind != "?" else None
    numbers = st.booleans() if limits is None else st.integers(int(limits.min), int(limits.max)) | st.integers(max(-3, int(limits.min)), 9)
    x = np.array(data.draw(st.lists(numbers, min_size=1, max_size=4)), kind)
    values = [int(v) for v in x]
    want = {"sum": sum, "reduce": sum, "prod": math.prod, "min": min, "max": max}.get(op, lambda v: sum(e * e for e in v))(values)
    shape = data.draw(st.sampled_from([(), (1,)]))
    out = np.zeros(shape, out_kind)
    array = x if shape == () else x[None]
    call = {"reduce": lambda **m: tally.reduce("sum", array, axis=-1, **m), "dot": lambda **m: tally.dot(array, x, **m)}.get(
        op, lambda **m: getattr(tally, op)(array, axis=-1, **m))
    result = np.asarray(call()).dtype if _fits(want, "u8" if x.dtype.kind == "u" else "i8") else None
    if result is None:
        with pytest.raises(OverflowError):
            call(out=out)
    elif not np.can_cast(result, out.dtype, "same_kind"):
        with pytest.raises(TypeError, match="cast"):
            call(out=out)
    elif _fits(want, out_kind):
        assert call(out=out) is out and int(out.reshape(-1)[0]) == want
    else:
        with pytest.raises(OverflowError):
            call(out=out)


def _fits(value, kind):
    limits = np.iinfo(np.dtype(kind).newbyteorder("=") if kind != "?" else "i1")
    return limits.min <= value <= limits.max


def test_an_index_fits_out_or_raises():
    x = np.zeros(1000)
    x[300] = 1
    assert tally.argmax(x, out=np.empty((), "i2")) == 300
    with pytest.raises(OverflowError):
        tally.argmax(x, out=np.empty((), "i1"))
    for out in (np.ma.masked_array(0.0, True), Unit(np.zeros(()))):
        with pytest.raises(TypeError):
            tally.sum(x, out=out)


# ---- Integers of 64 bits among floats --------------------------------------------------------------------------------

WIDE = st.integers(-2**63, 2**63 - 1) | st.integers(2**53 - 3, 2**53 + 3) | st.integers(-9, 9)
REALS = st.floats(-2.0**80, 2.0**80) | st.sampled_from([0.0, -0.0, 1.0, -1.0])


@given(st.lists(st.tuples(WIDE, REALS), max_size=6), st.booleans())
def test_products_of_integers_and_floats(pairs, swap):
    x, y = np.array([p[0] for p in pairs], "i8"), np.array([p[1] for p in pairs], "f8")
    want = rounded(sum((Fraction(a) * Fraction(b) for a, b in pairs), Fraction(0)), "f8")
    a, b = (y, x) if swap else (x, y)
    assert tally.vecdot(a, b) == tally.dot(a, b) == want
    assert np.array_equal(tally.vecdot(np.stack([a, a[::-1]]), np.stack([b, b[::-1]])), [want] * 2)


@given(st.lists(st.tuples(WIDE, st.integers(0, 2**64 - 1) | st.integers(0, 9)), min_size=1, max_size=6))
def test_products_of_both_kinds_of_integers(pairs):
    x, y = np.array([p[0] for p in pairs], "i8"), np.array([p[1] for p in pairs], "u8")
    assert tally.dot(x, y) == tally.dot(y, x) == rounded(sum(Fraction(a * b) for a, b in pairs), "f8")


@pytest.mark.parametrize("kinds", ["i8 f8", "f8 u8", "i8 u8"])
def test_products_by_blocks(rng, monkeypatch, kinds):
    x, y = (rng.integers(2**62, 2**63, (3, 5000)).astype("i8").view(k) if k != "f8" else rng.standard_normal((3, 5000)) for k in kinds.split())
    want = tally.vecdot(x, y)
    monkeypatch.setattr(tally._host, "BLOCK", 1 << 10)
    assert np.array_equal(tally.vecdot(x, y), want) and [tally.dot(a, b) for a, b in zip(x, y)] == want.tolist()
    assert np.array_equal(tally.dot(x[:, :9].copy(), y[:, :9].T), [[tally.dot(a[:9], b[:9]) for b in y] for a in x])


def test_products_with_infinities():
    wide = 2**53 + 1
    assert tally.dot([wide, -wide], [math.inf, 1.0]) == math.inf and tally.dot([wide, -wide], [1.0, math.inf]) == -math.inf
    assert math.isnan(tally.dot([wide, 0], [1.0, math.inf])) and math.isnan(tally.dot([wide], [math.nan]))
    assert tally.dot([-2**63 + 1], [math.inf]) == -math.inf and math.copysign(1, tally.dot([wide, 5], [-0.0, -0.0])) == -1


@given(st.lists(WIDE, max_size=5), st.sampled_from(["i8", "u8", ">i8"]))
def test_integers_become_floats_exactly_or_not_at_all(numbers, kind):
    x = np.array([abs(v) for v in numbers] if kind == "u8" else numbers, kind)
    held = all(int(float(v)) == v for v in map(int, x))
    doors = [lambda: tally.State("sum").update(x).value(), lambda: tally.State("sum").update(x[::-1]).value(),
             lambda: tally.Groups("sum", 1).update(x, np.zeros(x.size, "u1")).value()[0], lambda: tally.sum([*map(int, x), 0.5]) - 0.5 if held else
             tally.sum([*map(int, x), 0.5])]
    for door in doors[:3] if kind == "u8" or x.size == 0 or held else doors:
        if held:
            assert door() == rounded(Fraction(sum(map(int, x))), "f8")
        else:
            with pytest.raises(TypeError, match="exactly|hold"):
                door()


def test_a_frame_whose_integers_become_floats():
    pandas = pytest.importorskip("pandas")
    odd = 2**53 + 1
    with pytest.raises(TypeError, match="exactly"):
        tally.sum(pandas.DataFrame({"a": [odd], "b": [0.5]}))
    with pytest.raises(TypeError, match="exactly"):
        tally.sum(pandas.DataFrame({"a": [odd], "b": [0.5j]}))
    assert tally.sum(pandas.DataFrame({"a": [odd - 1], "b": [0.5]})) == odd - 1


def test_other_ways_on_which_integers_become_floats():
    odd = 2**53 + 1
    for bad in (lambda: tally.sum([1.0], initial=odd), lambda: tally.var(np.array([odd, odd]), mean=np.array([odd])),
                lambda: tally.sum([1j], initial=odd), lambda: tally.sum([[odd], [0.5]]), lambda: tally.sum([np.array([odd]), np.array([0.5])]),
                lambda: tally.dot(np.array([odd]), [1j])):
        with pytest.raises(TypeError):
            bad()
    assert tally.var(np.array([odd, odd]), mean=np.array([2**53])) == 1 and tally.max([1.0], initial=2**53 + 1) == 2**53
    with pytest.raises(TypeError, match="words are int64"):
        tally.State("sum").from_words(tally.State("sum").words().astype(float))


# ---- Norms -----------------------------------------------------------------------------------------------------------


def test_norms_are_numpy_s_or_refused():
    m = np.array([[1, -2], [3, 4]])
    for x in (m, m.astype("f4"), m[0], m > 1, m.astype("u1")):
        for ord in (None, 1, 2, np.inf):
            for axis in (None, 0, -1, (0,)) if x.ndim == 2 else (None, 0):
                if x.ndim == 2 and axis is None and ord is not None:
                    with pytest.raises(ValueError, match="axis="):
                        tally.norm(x, ord)
                    continue
                got, want = tally.norm(x, ord, axis=axis), np.linalg.norm(x, ord, axis=axis[0] if isinstance(axis, tuple) else axis)
                assert np.allclose(got, want) and np.asarray(got).dtype == np.asarray(want).dtype, (x.dtype, ord, axis)
    with pytest.raises(ValueError, match="axis="):
        tally.norm(m, 1, axis=(0, 1))


def test_norms_by_the_greatest_magnitude():
    least, third = -2**63, 1 / 3
    for x in (np.array([least, 5]), np.array([least, 5])[::-1], np.array([[least, 5]] * 2)):
        assert np.array_equal(tally.norm(x, np.inf, axis=-1), np.linalg.norm(x, np.inf, axis=-1))
    for kind in ("i1", "i8", "u8", "f8", "f4"):
        for dtype in ("f2", "f4", "f8"):
            got = tally.norm(np.array([3, 100], kind), np.inf, dtype=dtype)
            assert got == 100 and got.dtype == dtype == tally.reduce("norminf", np.array([3], kind), dtype=dtype).dtype
    assert tally.norm([third, -third], np.inf, dtype="f4") == np.float32(third)
    da = pytest.importorskip("dask.array")
    assert tally.norm(da.from_array(np.array([least, 5]), chunks=1), np.inf).compute(scheduler="sync") == 2.0**63


def test_norms_of_dask_arrays():
    da = pytest.importorskip("dask.array")
    m = np.array([[1, -2], [3, 4]])
    for x in (m, m.astype("f4")):
        for ord in (None, 1, 2, np.inf):
            for chunks in (1, 2):
                got, want = tally.norm(da.from_array(x, chunks=chunks), ord, axis=0), np.linalg.norm(x, ord, axis=0)
                assert got.dtype == want.dtype and np.allclose(got.compute(scheduler="sync"), want), (x.dtype, ord, chunks)


# ---- Of no elements --------------------------------------------------------------------------------------------------

EXTREMES = ["min", "max", "argmin", "argmax", "minmax", "describe", "count,max", "sum,argmin"]


@pytest.mark.parametrize("op", EXTREMES)
@pytest.mark.parametrize("kind", ["i8", "u1", "f8", "f2", "?"])
def test_there_is_no_least_of_nothing(op, kind):
    kind = np.dtype(kind)
    empty, some = np.empty(0, kind), np.array([1, 0, 1], kind)
    ids, offsets = [0, 2, 0], [0, 2, 2, 3]
    calls = [lambda: tally.reduce(op, empty), lambda: tally.reduce(op, np.empty((2, 0), kind), axis=1),
             lambda: tally.State(op, kind).value(), lambda: tally.group(op, some, ids), lambda: tally.group(op, some, ids, 2**21),
             lambda: tally.segment(op, some, offsets), lambda: tally.segment(op, empty, 2), lambda: tally.Groups(op, 3, kind).update(some, ids).value()]
    if op in ("minmax", "describe", "min", "argmin"):
        calls += [lambda: getattr(tally, op)(empty), lambda: getattr(tally, op)(np.empty((2, 0), kind), axis=1)]
    if "arg" not in op and op != "describe":
        calls += [lambda: tally.reduce(op, some, where=[False] * 3), lambda: tally.group(op, some, [0, 1, 2], where=[True, True, False])]
    for i, call in enumerate(calls):
        with pytest.raises(ValueError, match="no|empty"):
            print(i, call())
    filled = [tally.group(op, some, ids, fill_value=1), tally.segment(op, some, offsets, fill_value=1),
              tally.Groups(op, 3, kind).update(some, ids).value(fill_value=1)]
    for f, middle, parts in ((filled[0], 1, (some[[0, 2]], None, some[1:2])), (filled[1], 1, (some[:2], None, some[2:])),
                             (filled[2], 1, (some[[0, 2]], None, some[1:2]))):
        names = op.split(",") if op not in ("minmax", "describe") else type(f)._fields
        for name, values in zip(names, f if isinstance(f, tuple) else (f,)):
            if name in ("min", "max"):
                assert values[middle] == 1 and values[0] == getattr(np, name)(parts[0]) and values[2] == getattr(np, name)(parts[2])
                assert values.dtype == np.dtype(kind)
            elif name.startswith("arg"):
                assert values[middle] == 1 and values.dtype == np.int64
            elif name in ("count", "sum"):
                assert values[middle] == 0


def test_extremes_that_look_like_nothing():
    """The least and the greatest numbers of a type are elements, too."""
    for kind in ("i1", "i8", "u2"):
        limits = np.iinfo(kind)
        assert tally.group("max", np.array([limits.min, 5], kind), [1, 0]).tolist() == [5, limits.min]
        assert tally.segment("min", np.array([limits.max], kind), 1).tolist() == [limits.max]
    assert tally.group("min", [np.inf, 1.0], [0, 1]).tolist() == [np.inf, 1] and tally.Groups("max", 1).update([-np.inf], [0]).value() == -np.inf
    for bad, error in ((np.nan, TypeError), (1000, OverflowError), ("a", TypeError), ([1, 2], TypeError)):
        with pytest.raises(error):
            tally.segment("min", np.ones(2, "i1"), [0, 0, 2], fill_value=bad)
    assert np.isnan(tally.segment("min", [1.0], [0, 0, 1], fill_value=np.nan)[0])


def test_dask_has_no_least_of_nothing():
    da = pytest.importorskip("dask.array")
    import tally.dask
    with pytest.raises(ValueError, match="no identity"):
        tally.dask.min(da.ones((0, 3), chunks=1), axis=0)
    x = da.from_array(np.arange(10.0), chunks=5)
    with pytest.raises(ValueError, match="no"):
        tally.dask.max(x[x > 100]).compute(scheduler="sync")  # dask does not know that it is empty
    assert tally.dask.sum(x[x > 100]).compute(scheduler="sync") == 0
    with pytest.raises(OverflowError):
        tally.dask.sum(da.full(4, 2**62, chunks=2)).compute(scheduler="sync")
    with pytest.raises(OverflowError, match="int32"):
        tally.dask.sum(da.full(4, 2**31, chunks=2), dtype="i4").compute(scheduler="sync")
    assert tally.dask.sum(da.full(4, 2, chunks=2), dtype="i4").compute(scheduler="sync").dtype == np.int32


# ---- Laziness --------------------------------------------------------------------------------------------------------


def test_dask_arrays_stay_lazy():
    da, xarray = pytest.importorskip("dask.array"), pytest.importorskip("xarray")
    data = np.arange(12.0).reshape(3, 4)
    computed = []

    def look(block):
        computed.append(1)
        return block

    x = da.from_array(data, chunks=2).map_blocks(look, meta=np.empty((0, 0)))
    labelled = xarray.DataArray(x, dims=("a", "b"))
    calls = {lambda: tally.sum(x): data.sum(), lambda: tally.mean(x, axis=0): data.mean(0), lambda: tally.std(x, 1, ddof=1): tally.std(data, 1, ddof=1),
             lambda: tally.max(x, axis=0, keepdims=True): data.max(0, keepdims=True), lambda: tally.norm(x, 1, axis=0): data.sum(0),
             lambda: tally.count_nonzero(x=x): 11, lambda: tally.any(x): True, lambda: tally.reduce("sumsq", x, 0): (data**2).sum(0),
             lambda: tally.minmax(x).max: 11, lambda: tally.sum(labelled): data.sum(), lambda: tally.sum(labelled.variable): data.sum(), lambda: labelled.reduce(tally.mean).data: data.mean(),
             lambda: labelled.reduce(tally.mean, "a").data: data.mean(0)}
    results = [(call(), want) for call, want in calls.items()]
    assert not computed
    for got, want in results:
        assert isinstance(got, da.Array) and np.allclose(got.compute(scheduler="sync"), want)
    computed.clear()
    for bad in (lambda: tally.sum(x, where=data > 3), lambda: tally.sum(x, out=np.empty(())), lambda: tally.argmax(x), lambda: tally.describe(x),
                lambda: tally.dot(x, x), lambda: tally.dot(ONES, x), lambda: tally.State("sum").update(x), lambda: tally.group("sum", x[0], [0] * 4),
                lambda: tally.segment("sum", x, 2), lambda: tally.sum(ONES, where=x[0, :2] > 0), lambda: tally.State("sum").update(labelled),
                lambda: tally.Groups("sum", 1).update(x[0], [0] * 4), lambda: tally.prod(x, initial=2)):
        with pytest.raises(TypeError, match="compute"):
            bad()
    assert not computed


# ---- Ids -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("op", ["sum", "mean", "std", "prod", "count", "max", "argmin", "minmax", "count,var", "any", "and"])
def test_groups_of_which_few_occur(rng, monkeypatch, op):
    many = 5000
    monkeypatch.setattr(tally._host, "_MANY_GROUPS", 1000)
    x = rng.integers(1, 9, 40) if op == "and" else rng.standard_normal((2, 40))
    known = np.sort(rng.choice(many, 7, replace=False))
    ids, mask = known[rng.integers(0, 7, 40)], rng.random(40) < 0.7
    more = {"fill_value": -5} if op in ("max", "argmin", "minmax") else {}
    for where in (None, mask):
        got = tally.group(op, x, ids, many, where=where, **more)
        dense = tally.group(op, x, np.searchsorted(known, ids), 8, where=where, **more)  # the last one of nothing
        for g, d in zip(got if isinstance(got, tuple) else (got,), dense if isinstance(dense, tuple) else (dense,)):
            assert g.dtype == d.dtype and g.shape == (*d.shape[:-1], many)
            np.testing.assert_array_equal(g[..., known], d[..., :7])
            others = np.ones(many, bool)
            others[known] = False
            np.testing.assert_array_equal(g[..., others][..., ::10], np.broadcast_to(d[..., 7:], (*d.shape[:-1], -(-(many - 7) // 10))))


def test_ids_outside_of_many_groups():
    for bad, text in (([0, 2**25], "id 1 is 33554432"), ([-1, 0], "id 0 is -1")):
        with pytest.raises(ValueError, match=text):
            tally.group("sum", ONES, bad, 2**24)
    assert tally.group("sum", ONES, [5, 2**25], 2**24, skip_outside=True)[5] == 1
    assert tally.group("sum", [1.0, 2.0], np.array([2**23, 1], "u4"), 2**24, where=[True, False])[2**23] == 1
    with pytest.raises(ValueError, match="sorted"):
        tally.group("sum", ONES, [9, 3], 2**24, sorted=True)


def test_memory_follows_the_groups_that_occur():
    """Under a limit of memory, in which all of them would have no place."""
    done = subprocess.run([sys.executable, "-c", """
import numpy as np, resource, tally
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (400 << 20),) * 2)
x, ids = np.array([1.0, 2, 4]), np.array([0, 2**25 - 1, 0])
assert tally.group("sum", x, ids)[[0, 1, -1]].tolist() == [5, 0, 2]
assert np.isnan(tally.group("mean", x, ids, 2**25)[1])
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for wrong in ([0, 2**31, 5], [0, 2**28 - 1, 0], [2**62, 0, 0]):
    try:
        tally.group("sum", x, wrong)
    except MemoryError as error:
        assert "GB" in str(error) and "unique" in str(error), error
    else:
        raise AssertionError(wrong)
for call in (lambda: tally.Groups("sum", 2**28), lambda: tally.Groups("var", 2**21), lambda: tally.group("mean", x, ids, 2**40),
             lambda: tally.segment("sum", [], 2**40)):
    try:
        call()
    except MemoryError as error:
        assert "GB" in str(error), error
    else:
        raise AssertionError
print(peak >> 10)
"""], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 700


# ---- Words -----------------------------------------------------------------------------------------------------------


def of(text):
    """What a text makes, of the library that it begins with."""
    name = text.partition(".")[0]
    return lambda: eval(text, {name: pytest.importorskip(name)})


@pytest.mark.parametrize("make, text", [
    (lambda: (v for v in [1, 2]), "list(x)"), (lambda: map(int, "12"), "list(x)"), (lambda: {1, 2}, "list(x)"), (lambda: {1: 2}, "list(x)"),
    (lambda: None, "NoneType"), (lambda: decimal.Decimal(1), "Decimal"), (lambda: np.zeros(2, [("a", "f8")]), "field"),
    (lambda: pytest.importorskip("scipy.sparse").csr_array(np.eye(3)), "x.data"),
    *((of(kind), text) for kind, text in (
        ("pandas.Series(pandas.date_range('2020', periods=2, tz='UTC'))", ", UTC] is none of numbers"), ("pandas.Series(['1'])", "astype(float)"),
        ("pandas.Series(pandas.period_range('2020', periods=2, freq='D'))", "period[D] is none of numbers"), ("pandas.NaT", "no array of numbers"),
        ("pandas.Series([1, None], dtype=object)", "Python objects"), ("pandas.Series(pandas.interval_range(0, 2))", "interval[int64, right]"),
        ("pandas.DataFrame({'k': [1, 2], 'v': [1, 2]}).groupby('k')['v']", "tally.group"), ("polars.LazyFrame({'a': [1]})", "x.collect()"),
        ("pandas.date_range('2020', periods=2)", "asarray(x).view('i8')"), ("xarray.DataArray([[1, 2]]).astype('m8[s]')", "asarray(x).view('i8')"))),
    (lambda: pytest.importorskip("astropy.utils.masked").Masked([1.0, 2.0], mask=[False, True]), "x.unmasked and where=~x.mask"),
    (lambda: pytest.importorskip("polars").DataFrame({"a": [1.0, 2]}), "x['a']"),
    (lambda: pytest.importorskip("polars").Series(["1.10"]).cast(pytest.importorskip("polars").Decimal(10, 2)), "decimals"),
    (lambda: pytest.importorskip("polars").Series([1, 2]).cast(pytest.importorskip("polars").Datetime), "dates"),
    (lambda: pytest.importorskip("pyarrow").table({"a": [1]}), "columns"), (lambda: pytest.importorskip("xarray").Dataset({"a": 1}), "variables"),
])
def test_words(make, text):
    for call in (tally.sum, tally.State("sum").update, lambda x: tally.group("sum", x, [0, 0])):
        with pytest.raises(TypeError) as caught:
            call(make())
        assert text in str(caught.value)


def test_words_about_ids():
    with pytest.raises(TypeError, match="2: .*ravel"):
        tally.group("sum", np.ones((2, 2)), [[0, 1], [1, 0]])
    with pytest.raises(TypeError, match="float64.*unique"):
        tally.group("sum", ONES, [0.0, 1.0])


def test_squares_of_complex_numbers_with_a_mask(rng):
    z, mask = (rng.integers(-9, 9, (3, 4)) + 1j * rng.integers(-9, 9, (3, 4))).astype("c16"), rng.random((3, 4)) < 0.5
    for axis in (None, 0, (0, 1)):
        assert np.array_equal(tally.sumsq(z, axis=axis, where=mask), np.sum(np.where(mask, abs(z)**2, 0).round(), axis=axis))
    assert tally.sumsq(z, where=False) == 0


