"""The same exceptions as NumPy's for the same mistakes, each with a line that names what is wrong."""

import warnings

import numpy as np
import pytest

import tally

AxisError = getattr(np, "exceptions", np).AxisError
X = np.arange(12.0).reshape(3, 4)
OWN = tally.Operator("a + b", identity=0)


@pytest.mark.parametrize("call, error, text", [
    (lambda: tally.sum(X, axis=2), AxisError, "axis 2 is out of bounds for array of dimension 2"),
    (lambda: tally.sum(X, axis=(0, -3)), AxisError, "axis -3 is out of bounds"),
    (lambda: tally.argmax(X, axis=5), AxisError, "axis 5"),
    (lambda: tally.sum(X, axis=(0, 0)), ValueError, "duplicate value in 'axis'"),
    (lambda: tally.sum(X, axis=(1, -1)), ValueError, "duplicate"),
    (lambda: tally.sum(X, axis=1.0), TypeError, "float"),
    (lambda: tally.sum(X, axis=[0]), TypeError, "list"),
    (lambda: tally.argmin(X, axis=(0, 1)), TypeError, "tuple"),
    (lambda: tally.sum(X, axis=True), TypeError, "integer is required"),
    (lambda: tally.sum(), TypeError, "sum() missing"),
    (lambda: tally.sum(X, nonsense=1), TypeError, "sum() got an unexpected keyword argument 'nonsense'"),
    (lambda: tally.sum(X, out=np.empty(3)), ValueError, "shape"),
    (lambda: tally.sum(X, axis=0, out=np.empty(4, int)), TypeError, "cast"),
    (lambda: tally.sum(X, out=[1]), TypeError, "ArrayType"),
    (lambda: tally.min(np.empty(0)), ValueError, "zero-size array to reduction operation minimum which has no identity"),
    (lambda: tally.max(np.empty((3, 0)), axis=1), ValueError, "no identity"),
    (lambda: tally.argmax(np.empty(0)), ValueError, "attempt to get argmax of an empty sequence"),
    (lambda: tally.argmin(np.empty((2, 0)), axis=1), ValueError, "empty sequence"),
    (lambda: tally.min(X, where=X > 3), ValueError, "initial"),
    (lambda: tally.sum(X, where=X), TypeError, "bool"),
    (lambda: tally.sum(X, where=np.ones(5, bool)), ValueError, "broadcast"),
    (lambda: tally.sum(X, initial=[1, 2]), ValueError, "one number"),
    (lambda: tally.sum(np.arange(3), initial=0.5), TypeError, "elements"),
    (lambda: tally.sum(np.arange(3, dtype="u1"), initial=-1), OverflowError, "fit"),
    (lambda: tally.sum(X, dtype=int), TypeError, "floating dtype"),
    (lambda: tally.mean(np.arange(3), dtype=int), TypeError, "floating dtype"),
    (lambda: tally.sum(np.array([2**62] * 2)), OverflowError, "does not fit"),
    (lambda: tally.sum(np.array([[2**62] * 2] * 3), axis=1), OverflowError, "result 0"),
    (lambda: tally.sum(np.array([200, 100]), dtype="i1"), OverflowError, "int8"),
    (lambda: tally.sum(np.ones(3, "g")), TypeError, "float64"),
    (lambda: tally.sum(np.array([1, None])), TypeError, "Python objects"),
    (lambda: tally.sum(np.array(["2020-01-01"], "M8[D]")), TypeError, "datetime64"),
    (lambda: tally.sum(np.array([1], "m8[s]")), TypeError, "timedelta64"),
    (lambda: tally.sum(np.array(["a"])), TypeError, "<U1"),
    (lambda: tally.sum(np.zeros(2, [("a", "f8")])), TypeError, "reduce"),
    (lambda: tally.bitwise_and(X), TypeError, "not supported"),
    (lambda: tally.min(np.array([1j])), TypeError, "complex"),
    (lambda: tally.var(X, mean=np.zeros(3)), ValueError, "keepdims=True"),
    (lambda: tally.var(np.array([1j]), dtype=int), TypeError, "floating dtype"),
    (lambda: tally.sum(np.ma.masked_array([1.0], [True])), TypeError, "masked"),
    (lambda: tally.var(X, ddof=1, correction=1), ValueError, "simultaneously"),
    (lambda: tally.var(X, ddof=-1), ValueError, "ddof"),
    (lambda: tally.norm(X, 3), ValueError, "norm order"),
    (lambda: tally.sum(X, device="gpu"), ValueError, "gpu"),
    (lambda: tally.sum(X, device=7), TypeError, "device"),
    (lambda: tally.dot(X, X), ValueError, "not aligned"),
    (lambda: tally.vecdot(X, X[:, :2]), ValueError, "elements"),
    (lambda: tally.vecdot(X, X[0], axis=1), AxisError, "axis 1 is out of bounds for array of dimension 1"),
    (lambda: tally.vecdot(X, 1.0), ValueError, "vectors"),
    (lambda: tally.reduce("dot", X), TypeError, "two arrays: tally.dot"),
    (lambda: tally.reduce("count,dot", X), TypeError, "two arrays: tally.dot"),
    (lambda: tally.group("dot", [1.0], [0]), TypeError, "two arrays: tally.dot"),
    (lambda: tally.segment("dot", [1.0], 1), TypeError, "two arrays: tally.dot"),
    (lambda: tally.Groups("dot", 2), TypeError, "two arrays: tally.dot"),
    (lambda: tally.State("dot").update(X), TypeError, "two arrays"),
    (lambda: tally.reduce(OWN, [1.0], dtype="f4"), TypeError, "Operator has results of the elements' type"),
    (lambda: tally.reduce(OWN, [1.0], ddof=1), TypeError, "no ddof="),
    (lambda: tally.group(OWN, [1.0], [0], ddof=1), TypeError, "no ddof="),
    (lambda: tally.State(OWN, fast=True), TypeError, "no fast="),
    (lambda: tally.State.from_bytes(bytes(tally.State("var", ddof=1)), "var"), ValueError, "var of f64, ddof 1, and not var of f64"),
    (lambda: tally.State.from_bytes(bytes(tally.State("sum")), "sum", out="f4"), ValueError, "sum of f64, and not sum of f64, rounded to f32"),
    (lambda: tally.State("sum").__iadd__(tally.State("sum", fast=True)), ValueError, "sum of f64; and sum of f64, fast"),
    (lambda: tally.segment("sum", [1, 2, 3], np.array([0, 2**64 - 1], "u8")), ValueError, "offset 1 is 18446744073709551615, outside"),
    (lambda: tally.reduce("nonsense", X), ValueError, "nonsense"),
    (lambda: tally.segment("sum", [1, 2, 3], [0, 2, 1]), ValueError, "offset 2 falls"),
    (lambda: tally.segment("sum", [1, 2, 3], [0, 4]), ValueError, "outside"),
    (lambda: tally.segment("sum", [1, 2, 3], [0.0, 1.0]), TypeError, "integers"),
    (lambda: tally.segment("sum", [1, 2, 3], 2), ValueError, "one length"),
    (lambda: tally.group("sum", [1, 2, 3], [0, 1]), ValueError, "ids"),
    (lambda: tally.group("sum", [1, 2], [0, 5], 3), ValueError, "id 1 is 5"),
    (lambda: tally.group("sum", [1, 2], ["a", "b"]), TypeError, "unique"),
    (lambda: tally.State("sum", "c16"), TypeError, "real"),
    (lambda: tally.State("sum", "f4").update([1.0]), TypeError, "exactly"),
    (lambda: tally.State.from_bytes(b"x", "sum"), ValueError, ""),
    (lambda: tally.State("sum").__iadd__(tally.State("max")), ValueError, ""),
    (lambda: tally.sum(X, axis=0, out=(np.empty(4), np.empty(4))), TypeError, "ArrayType"),
    (lambda: tally.argmax(X, axis=0, out=np.empty(4)), TypeError, "float64"),
    (lambda: tally.sum(X, keepdims="no"), TypeError, "str"),
    (lambda: tally.sum(X, keepdims=None), TypeError, "NoneType"),
    (lambda: tally.var(X, ddof="1"), TypeError, "ddof= is a number"),
    (lambda: tally.State("var", ddof="1"), TypeError, "ddof= is a number"),
    (lambda: tally.sum(np.arange(3), initial=2**64), OverflowError, "fit"),
    (lambda: tally.max(np.arange(3), initial=-2**64), OverflowError, "fit"),
    (lambda: tally.norm(X, [2]), ValueError, "norm order"),
    (lambda: tally.vecdot(X, X, axis=None), TypeError, "NoneType"),
    (lambda: tally.vecdot(X, X, axis=(0,)), TypeError, "tuple"),
    (lambda: tally.segment("sum", X, 2, axis=None), TypeError, "NoneType"),
    (lambda: tally.segment("sum", X, 2, axis=(0, 1)), TypeError, "tuple"),
    (lambda: tally.segment(None, X, 2), TypeError, "operator's name"),
    (lambda: tally.reduce(np.sum, X), TypeError, "operator's name"),
    (lambda: tally.group("sum", [1, 2], [0, 1], -1), ValueError, "no -1 groups"),
    (lambda: tally.group("sum", [1, 2], [0, 1], 2.5), TypeError, "float"),
    (lambda: tally.group("sum", [1, 2], [0, 1], where=[1, 0]), TypeError, "bool"),
    (lambda: tally.reduce("count,mean", [1, 2], dtype="i4"), TypeError, "mean is no integer"),
    (lambda: tally.reduce(tally.Operator("a + b", identity=None), [1.0]), TypeError, "identity"),
    (lambda: tally.reduce(tally.Operator("a + b", identity=0.5), [1]), TypeError, "identity"),
])
def test_error(call, error, text):
    with pytest.raises(error) as caught:
        call()
    assert text in str(caught.value), caught.value
    assert str(caught.value).strip() and "\n" not in str(caught.value)


@pytest.mark.parametrize("call", [
    "mean(X[:0])", "mean(X[:0], axis=0)", "mean(X[:0], axis=1)", "mean(X, axis=1, where=X > 3)", "mean(X, axis=0, where=X > 3)",
    "mean(X, where=False)", "mean(X[:0] + 1j, axis=0)", "mean(X + 1j, axis=1, where=X > 3)", "var(X[:1], axis=0, ddof=1)",
    "std(X, axis=0, ddof=3)", "std(X, axis=1, ddof=3)", "var(X[:, :0], axis=1)", "var(X, ddof=2, axis=1, where=X > 5)",
    "var(X, ddof=1, axis=1, where=X > 2)", "var(X + 1j, axis=1, ddof=4)", "std(X + 1j, axis=1, ddof=4, where=X > 2)",
    "var(X * np.nan, axis=0)", "var(X * np.nan, axis=0, where=X > 2, ddof=1)", "sum(X[:0])", "var(X.astype('f4'), axis=1, ddof=4)"])
def test_warns_as_numpy_does(call):
    """Of too few elements, and of nothing else; from the caller's line."""
    texts = []
    for module in ("np", "tally"):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            eval(f"{module}.{call}")
        texts.append([str(w.message).rstrip(".") for w in caught if w.category is RuntimeWarning and
                      ("empty" in str(w.message) or "freedom" in str(w.message))])
        assert module == "np" or (len(caught) == len(texts[1]) and all(w.filename == "<string>" for w in caught))
    assert texts[0] == texts[1], texts


@pytest.mark.parametrize("mistake", [dict(axis=2), dict(axis=(0, 0)), dict(axis=1.0), dict(where=np.ones(5, bool)),
                                     dict(out=np.empty(3)), dict(nonsense=1)])
def test_as_numpy_raises(mistake):
    errors = []
    for module in (np, tally):
        with pytest.raises(Exception) as caught:
            module.sum(X, **mistake)
        errors.append(caught.type)
    assert issubclass(errors[1], errors[0]) or issubclass(errors[0], errors[1])


def test_a_device_that_does_whole_arrays_only():
    if not any(d["spec"].startswith("model") for d in tally.devices()):
        pytest.skip("built without the model")
    assert tally.sum(np.arange(100.0), device="model") == 4950
    try:
        assert np.array_equal(tally.sum(X, axis=0, device="model"), X.sum(0))
    except NotImplementedError as error:
        assert "whole arrays" in str(error)


def test_what_is_no_mistake():
    assert tally.sum([1.5], initial=2**70) == np.sum([1.5], initial=2**70)
    assert tally.max(np.ones(2, "f4"), initial=2**70) == np.float32(2**70)
    assert tally.sum(X, keepdims=np.True_).shape == (1, 1) and tally.sum(X, axis=0, keepdims=0).shape == (4,)
    assert tally.sum(X, out=(np.empty(()),)) == 66
    assert np.array_equal(tally.vecdot(np.ones((2, 3)), np.ones(2), axis=0), [2, 2, 2])
    for call in (lambda x, **more: tally.reduce("prod", x, **more), lambda x, **more: tally.group("prod", x, [0] * 3, **more)[0],
                 lambda x, **more: tally.segment("prod", x, 1, **more)[0]):
        assert call([2, 3, 7], dtype="f4") == 42 and call([0.1, 3, 7], dtype="f4") == tally.prod([0.1, 3, 7], dtype="f4")
    assert tally.reduce(OWN, [1, 2], dtype="i4").dtype == np.int32
    count, total = tally.reduce("count,sum", [1, 2], dtype="i4")
    assert count == 2 and total == 3 and count.dtype == total.dtype == np.int32
    assert tally.reduce("argmax", [1, 2], dtype="u1").dtype == np.uint8
