"""Names, texts, values as decimals, devices: the small functions around the reductions."""

import ctypes
import fractions
import os
import struct
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import data
import oracle
import tally
from tally import CODE, FLOATS, INTS, OPCODE, OPS, SIZE, STATISTICS, TYPES

F = fractions.Fraction


def test_names():
    assert tally.version() == b"0.1.0"
    for name in TYPES:
        assert tally.type_name(CODE[name]) == name.encode()
        assert tally.type_size(CODE[name]) == SIZE[name]
        out = ctypes.c_int(-9)
        assert tally.type_parse(name.encode(), out) == tally.OK and out.value == CODE[name]
    for name in OPS + STATISTICS:
        assert tally.op_name(OPCODE[name]) == name.encode()
        out = ctypes.c_int(-9)
        assert tally.op_parse(name.encode(), out) == tally.OK and out.value == OPCODE[name]
    assert tally.op_name(OPCODE["user"]) == b"user"
    for code in (0, -1, 13, 8, 26, 99, 1 << 30, -(1 << 31)):
        if not 1 <= code <= len(TYPES):
            assert tally.type_name(code) is None and tally.type_size(code) == 0
        if not 1 <= code <= len(OPCODE):
            assert tally.op_name(code) is None
    texts = {tally.status_text(s) for s in range(len(tally.STATUS))}
    assert len(texts) == len(tally.STATUS) and None not in texts and b"" not in texts
    for s in (-1, 8, 1000):
        assert tally.status_text(s)


def test_names_that_are_none():
    for parse, good in ((tally.type_parse, TYPES), (tally.op_parse, OPS + STATISTICS)):
        wrong = ["", " ", "f65", "f6", "f644", "F64", "su", "sums", "sum ", " sum", "f64\n", "1",
                 "%s%n", "x" * 5000, "f64,f32", "\xff", "user"]
        for name in [w for w in wrong if w not in good] + [None]:
            out = ctypes.c_int(-9)
            status = parse(None if name is None else name.encode("latin-1"), out)
            tally.check_failed(status)
            assert out.value == -9


# ---- Values -------------------------------------------------------------------------------------

def print_value(type_, bits):
    room = (ctypes.c_ubyte * 48)(*([0xEE] * 48))
    length = tally.value_print(tally.make_value(type_, bits), room, 32)
    got = bytes(room)
    assert length < 32 and got[length] == 0 and b"\0" not in got[:length]
    assert got[32:] == b"\xee" * 16, "wrote past the 32 bytes"
    return got[:length].decode("ascii")


def digits(text):
    """The number of significant digits a decimal shows."""
    mantissa = text.lower().split("e")[0].replace("-", "").replace(".", "").lstrip("0")
    return len(mantissa.rstrip("0")) or 1


def shortest(type_, bits):
    """The fewest digits of any decimal that rounds to these bits: searched for, exactly."""
    here = oracle.units_of_bits(type_, bits)
    below = oracle.units_of_bits(type_, bits - 1)
    above = oracle.units_of_bits(type_, bits + 1) if bits + 1 < oracle.INF[type_] else \
        2 * here - below
    low, high = F(here + below, 2 << oracle.UNIT), F(here + above, 2 << oracle.UNIT)
    closed = bits % 2 == 0
    exponent = len(str(int(high))) if high >= 1 else -len(str(int(1 / high)))
    scale = exponent + 2
    while True:
        unit = F(10) ** scale
        first = -(-low // unit)  # the first multiple of 10^scale in the interval
        if first * unit == low and not closed:
            first += 1
        if first * unit < high or first * unit == high and closed:
            return len(str(int(first)).rstrip("0")) or 1
        scale -= 1


def some_floats(g, type_):
    field = oracle.FORMAT[type_][0] - 1
    count = oracle.INF[type_] >> field
    some = [1, 2, 3, oracle.INF[type_] - 1, 1 << field, (1 << field) - 1]
    some += [e << field for e in range(1, count, max(1, count // 300))]      # powers of two
    some += [(e << field) - 1 for e in range(1, count, max(1, count // 100))]
    some += (data.finite_bits(g, type_, 300) & ~np.array(oracle.SIGN[type_], f"u{SIZE[type_]}")).tolist()
    some += data.floats(type_, [0.1, 0.5, 1, 1.5, 2, 3, 10, 100, 1000, 0.001, 1e5, 1e10, 1e15, 1e16,
                                1e17, 123456, 9007199254740993, 0.3, 1e23, 2.0 ** -44, 5e-324,
                                2.2250738585072014e-308, 1.7976931348623157e308]).tolist()
    return [b for b in some if 0 < b < oracle.INF[type_]]


@pytest.mark.parametrize("type_", FLOATS)
def test_the_shortest_decimal_that_reads_back(type_):
    g = data.rng("print " + type_)
    for bits in some_floats(g, type_):
        text = print_value(type_, bits)
        value = F(text)
        units = value * (1 << oracle.UNIT)
        # read back with one rounding, by MPFR, from the exact decimal
        import gmpy2
        back = gmpy2.mpfr(gmpy2.mpq(value), 0, oracle._context(type_))
        assert oracle.bits_of_double(type_, float(back)) == bits, (type_, hex(bits), text, float(units))
        assert digits(text) == shortest(type_, bits), (type_, hex(bits), text, shortest(type_, bits))
        if type_ == "f64":
            assert digits(text) == digits(repr(struct.unpack("<d", struct.pack("<Q", bits))[0]))
        assert print_value(type_, bits | oracle.SIGN[type_]) == "-" + text


def test_special_values_print():
    for type_ in FLOATS:
        inf, minus = oracle.INF[type_], oracle.SIGN[type_]
        assert print_value(type_, inf) == "inf"
        assert print_value(type_, inf | minus) == "-inf"
        assert print_value(type_, oracle.NAN[type_]) == "nan"
        assert float(print_value(type_, 0)) == 0 and print_value(type_, 0)[0] != "-"
        assert float(print_value(type_, minus)) == 0 and print_value(type_, minus)[0] == "-"


def test_integers_print():
    g = data.rng("print integers")
    for type_ in INTS:
        low, high = oracle.integer_range(type_)
        mask = (1 << (8 * SIZE[type_])) - 1
        for value in [low, low + 1, high, high - 1, 0, 1] + \
                g.integers(low, high, 100, np.int64 if type_[0] == "i" else np.uint64).tolist():
            assert print_value(type_, value & mask) == str(value)
            assert tally.value_bits(tally.make_value(type_, value & mask)) == value & mask
            assert tally.value_double(tally.make_value(type_, value & mask)) == float(value)
    for value in ((1 << 53) + 1, (1 << 53) + 3, (1 << 63) + 1024, (1 << 63) + 1025, (1 << 64) - 1,
                  (1 << 64) - 1025, (1 << 64) - 1024):
        assert tally.value_double(tally.make_value("u64", value)) == float(value)


def test_bits_and_doubles():
    g = data.rng("bits")
    for type_ in FLOATS:
        for bits in data.finite_bits(g, type_, 500).tolist() + [0, oracle.SIGN[type_], oracle.INF[type_]]:
            value = tally.make_value(type_, bits)
            assert tally.value_bits(value) == bits
            want = float(oracle.to_f64(type_, np.array([bits], tally.DTYPE[type_]))[0])
            got = tally.value_double(value)
            assert struct.pack("<d", got) == struct.pack("<d", want)
        assert np.isnan(tally.value_double(tally.make_value(type_, oracle.NAN[type_])))
    # what lies beyond the type's bits in the union is not part of the value
    for type_ in TYPES:
        value = tally.make_value(type_, (1 << 64) - 1)
        assert tally.value_bits(value) == (1 << (8 * SIZE[type_])) - 1


def test_print_into_little_room():
    """Too little room: nothing is written past it, and what is there ends with a NUL."""
    for type_, bits in (("f64", 0x3fb999999999999a), ("i64", 1 << 63), ("f16", 0x7c00)):
        full = print_value(type_, bits)
        for size in range(0, 32):
            room = (ctypes.c_ubyte * 40)(*([0xEE] * 40))
            length = tally.value_print(tally.make_value(type_, bits), room, size)
            got = bytes(room)
            assert got[size:] == b"\xee" * (40 - size), (type_, size)
            if size:
                assert b"\0" in got[:size], (type_, size)
            if size > len(full):
                assert length == len(full) and got[:length].decode() == full


def test_decimal_point_of_another_locale(tmp_path):
    """A comma for a decimal point is the host's business, not a result's."""
    source = tmp_path / "comma"
    source.write_text('LC_NUMERIC\ndecimal_point ","\nthousands_sep ""\ngrouping -1\nEND LC_NUMERIC\n')
    try:
        subprocess.run(["localedef", "-c", "-i", source, "-f", "ANSI_X3.4-1968", tmp_path / "comma_XX"],
                       capture_output=True)
    except FileNotFoundError:
        pytest.skip("no localedef to make a locale with")
    program = textwrap.dedent("""
        import locale, sys
        try:
            locale.setlocale(locale.LC_NUMERIC, "comma_XX")
        except locale.Error:
            sys.exit(77)
        assert locale.localeconv()["decimal_point"] == ","
        sys.path.insert(0, sys.argv[1])
        from test_api import print_value
        assert print_value("f64", 0x3ff8000000000000) == "1.5"
        assert print_value("f64", 0x3fb999999999999a) == "0.1"
        assert print_value("f32", 0x3dcccccd) == "0.1"
        assert print_value("f16", 0x3e00) == "1.5"
        assert float(print_value("f64", 0x0123456789abcdef)) == float.fromhex("0x1.3456789abcdefp-1005")
    """)
    done = subprocess.run([sys.executable, "-c", program, os.path.dirname(__file__)],
                          env=dict(os.environ, TALLY_LIB=tally.PATH, LOCPATH=str(tmp_path)),
                          capture_output=True, text=True)
    if done.returncode == 77:
        pytest.skip("no locale with a decimal comma can be made here")
    assert done.returncode == 0, done.stderr


# ---- Devices ------------------------------------------------------------------------------------

def test_describe(devices, isas):
    for device in devices:
        if device.spec is None:
            continue
        info = device.info()
        assert info.spec and info.name and info.isa.decode() in isas
        assert info.units >= 1 and info.threads >= 1 and info.memory_bytes > 1 << 20
        if "threads=" in device.spec:
            assert info.threads == int(device.spec.split("threads=")[1].split(",")[0])
            assert info.isa.decode() == device.spec.split("isa=")[1]
        again = tally.Device(info.spec.decode())  # "the text that opens this device"
        assert again.info().isa == info.isa and again.info().spec == info.spec
        assert again.info().threads == info.threads
        again.close()


def test_default_device_uses_every_core():
    device = tally.Device("cpu")
    assert device.info().threads == len(os.sched_getaffinity(0))
    device.close()


def test_only_the_cores_that_are_allowed():
    allowed = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(allowed)})
        device = tally.Device("cpu")
        assert device.info().threads == device.info().units == 1
        device.close()
    finally:
        os.sched_setaffinity(0, allowed)


def test_describing_leaves_no_file_open():
    device = tally.Device("cpu")
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        device.info()
        assert tally.device_list(None, 0, ctypes.c_size_t()) == tally.OK
    device.close()
    assert len(os.listdir("/proc/self/fd")) == before


def test_list():
    count = ctypes.c_size_t(12345)
    assert tally.device_list(None, 0, count) == tally.OK
    many = count.value
    assert 1 <= many < 1000
    infos = (tally.DeviceInfo * (many + 2))()
    for i in range(many + 2):
        infos[i].units = 0xABCD
    assert tally.device_list(infos, 1, count) == tally.OK and count.value == many
    assert infos[0].spec and infos[1].units == 0xABCD and not infos[1].spec
    assert tally.device_list(infos, many + 2, count) == tally.OK and count.value == many
    assert infos[many].units == 0xABCD and not infos[many].spec
    specs = [infos[i].spec for i in range(many)]
    assert len(set(specs)) == many and b"cpu" in specs
    for spec in specs:
        device = tally.Device(spec.decode())
        assert device.info().spec.split(b":")[0] == spec.split(b":")[0]
        device.close()


@pytest.mark.parametrize("spec", [
    "", " ", "gpu", "cpux", "CPU:", "cpu,threads=1", "cpu:isa=mmx", "cpu:isa=", "cpu:threads=",
    "cpu:threads=x", "cpu:threads=-1", "cpu:threads=3x", "cpu:threads= 3", "cpu:bogus=1", "cpu:bogus",
    "cpu:threads=3,isa=", "cpu:threads=3;isa=avx2", "cpu:threads=4294967297",
    "cpu:threads=18446744073709551617", "cpu:threads=1,threads", "cpu:threads=1,threads=2", "cpu:isa=baseline,isa=baseline", "cpu:isa=avx2avx2", "auto:threads=x",
    "%s%s%n", "a" * 10000, "cpu:" + "threads=1," * 1000 + "x", "cpu:isa=" + "a" * 1000, "\n", "cpu\n",
    "cpu:isa=baseline\n", "cpu:threads=1e0", "cpu:threads=0x1"])
def test_specs_that_name_no_device(spec):
    with pytest.raises(LookupError, match="EDEVICE"):
        tally.Device(spec)


def test_isas_of_other_machines(isas):
    missing = {"baseline", "avx2", "avx512", "neon"} - set(isas)
    for isa in missing:
        with pytest.raises(LookupError, match="EDEVICE"):
            tally.Device("cpu:isa=" + isa)


def test_more_threads_than_elements(isas):
    raw = data.floats("f64", [1.0, 2.0, 4.0])
    device = tally.Device("cpu:threads=64")
    assert device.info().threads == 64
    for n in range(4):
        want = oracle.answer("sum", "f64", raw[:n])
        assert tally.reduce(device, "sum", "f64", raw.ctypes.data, n) == want
    big = data.make(data.rng("64"), "bits", "f64", 300_001)
    assert tally.reduce_array(device, "sum", "f64", big) == oracle.answer("sum", "f64", big)
    device.close()


def test_read_roof(devices):
    raw = np.zeros(1 << 20, np.uint8)
    for device in devices:
        if device.spec is None:
            continue
        for offset, size in ((0, raw.nbytes), (1, raw.nbytes - 3), (0, 1), (5, 100)):
            seconds = ctypes.c_double(-1)
            assert tally.device_read(device.handle, raw.ctypes.data + offset, size, seconds) == tally.OK
            assert 0 <= seconds.value < 100


def test_an_error_is_told_to_its_own_thread():
    import threading
    value = tally.fresh_value()
    asked = tally.problem("sum", "f64")
    assert tally.c_reduce(None, ctypes.byref(asked), None, None, 5, value) == tally.EINVAL
    mine = tally.error()
    seen = []

    def other():
        seen.append(tally.error())
        seen.append(tally.c_open(b"nothing-like-this", ctypes.byref(ctypes.c_void_p())))
        seen.append(tally.error())

    thread = threading.Thread(target=other)
    thread.start()
    thread.join()
    assert seen[0] == b"" and seen[1] == tally.EDEVICE and b"nothing-like-this" in seen[2]
    assert tally.error() == mine
