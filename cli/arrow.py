"""Writes a column of an Arrow or Parquet file: its type, as tally calls it, on a line, then its raw elements.

    python3 - FILE COLUMN skip|keep      COLUMN: a name, a number from 1, or "" for the only one

What is wrong becomes the one line on standard error that the command would write. The command runs this text where
it meets such a file; it is there for those who have Python's pyarrow.
"""
import sys

path, wanted, missing = sys.argv[1:]


def give_up(text):
    line = f"tally: {path}{text}"
    print("".join(c if c.isprintable() else "?" for c in line), file=sys.stderr)
    sys.exit(1)


try:
    import pyarrow
    from pyarrow import compute, ipc
except ImportError as error:
    if error.name == "pyarrow" and isinstance(error, ModuleNotFoundError):
        give_up(" is an Arrow or Parquet file, for which Python's pyarrow is needed; install it (pip install pyarrow), "
                "or save the column as a .npy file")
    give_up(" is an Arrow or Parquet file, and Python's pyarrow, which reads them, cannot be used: "
            f"{' '.join(str(error).split())[:200]}; save the column as a .npy file")

TYPES = {"int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64", "uint8": "u8", "uint16": "u16", "uint32": "u32",
         "uint64": "u64", "halffloat": "f16", "float": "f32", "double": "f64", "bool": "u8"}


def open_file():
    """The schema, and what gives the batches of one column."""
    with open(path, "rb") as file:
        is_parquet = file.read(4) == b"PAR1"
    if is_parquet:
        from pyarrow import parquet
        table = parquet.ParquetFile(path)
        schema = table.schema_arrow
        return schema, lambda i: (batch.column(0) for batch in table.iter_batches(columns=[schema.names[i]]))
    arrow = ipc.open_file(pyarrow.memory_map(path))
    return arrow.schema, lambda i: (arrow.get_batch(k).column(i) for k in range(arrow.num_record_batches))


def find(names):
    if wanted in names and wanted:
        return names.index(wanted)
    if wanted.isdigit() and 1 <= int(wanted) <= len(names):
        return int(wanted) - 1
    if not wanted and len(names) == 1:
        return 0
    listed = " ".join(names)[:400]
    give_up(f" has no column {wanted}; its columns are {listed}" if wanted else f" has several columns; name one, as in -c {names[0]}: {listed}")


def write(out, column, name, row):
    """Writes the elements that lie side by side in the column's memory."""
    is_floating = pyarrow.types.is_floating(column.type)
    if column.null_count and missing == "keep":
        first = row + column.is_null().to_pylist().index(True)
        give_up(f": row {first + 1} of column {name} has no value; --skip-na leaves such rows out")
    if missing == "skip":
        column = column.drop_null()
        if is_floating:
            column = column.filter(compute.invert(compute.is_nan(column)))
    if pyarrow.types.is_boolean(column.type):
        column = column.cast(pyarrow.uint8())
    size = column.type.bit_width // 8
    if len(column):
        out.write(column.buffers()[1][column.offset * size:(column.offset + len(column)) * size])


def main():
    schema, batches = open_file()
    i = find(schema.names)
    name, row = schema.names[i], 0
    if str(schema.types[i]) not in TYPES:
        give_up(f": column {name} is of type {schema.types[i]}; a column of numbers is needed")
    out = sys.stdout.buffer
    out.write(TYPES[str(schema.types[i])].encode() + b"\n")
    for column in batches(i):
        write(out, column, name, row)
        row += len(column)
    out.flush()


try:
    main()
except BrokenPipeError:  # nobody reads any longer
    sys.stderr.close()
    sys.exit(1)
except Exception as error:
    give_up(f" cannot be read: {' '.join(str(error).split())[:400]}")
