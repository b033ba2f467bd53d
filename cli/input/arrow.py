"""arrow.py - writes columns of an Arrow or Parquet file to standard output: a line with their types, then their values.

    python3 -c TEXT FILE skip|keep array|text|rows|pairs VALUES COUNT COLUMN... KEYS COLUMN...

The command runs the TEXT of this file for an Arrow or Parquet file; it needs pyarrow.

COLUMN is a name, a number from 1, or "" for the only one. The first COUNT columns have the values, the others the keys.
VALUES and KEYS are lists of several columns as the user typed them, or "". If such a list as a whole is the name of a
column, it means that column alone.

The first line has the types of the values by tally's names, with commas between them. The word "values" or "keys"
follows if that list is the name of one column. Then one column of numbers follows as raw elements; one of decimals, or
as `text`, as a line for each value; `rows` and `pairs` as comma-separated values. An error becomes one line on standard
error, as the command itself would write it.
"""
import sys

path, missing, kind, all_values, count = sys.argv[1:6]
values = sys.argv[6:6 + int(count)]
all_keys, keys = sys.argv[6 + int(count)], sys.argv[7 + int(count):]


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
    """Returns the schema, and a function that gives the batches of some columns."""
    with open(path, "rb") as file:
        is_parquet = file.read(4) == b"PAR1"
    if not is_parquet:
        arrow = ipc.open_file(pyarrow.memory_map(path))
        return arrow.schema, lambda columns: ([arrow.get_batch(k).column(i) for i in columns]
                                              for k in range(arrow.num_record_batches))
    from pyarrow import parquet
    table = parquet.ParquetFile(path)
    names = table.schema_arrow.names

    def batches(columns):
        wanted = [names[i] for i in columns]
        if any(names.count(name) > 1 for name in wanted):
            for k in range(table.num_row_groups):
                yield [table.read_row_group(k).column(i).combine_chunks() for i in columns]
        else:
            for batch in table.iter_batches(columns=wanted):
                yield [batch.column(batch.schema.names.index(name)) for name in wanted]

    return table.schema_arrow, batches


def find(names, wanted):
    if names.count(wanted) > 1 and wanted:
        one, other = [i + 1 for i, name in enumerate(names) if name == wanted][:2]
        give_up(f" has two columns {wanted}, {one} and {other}; give the number of one of them")
    if wanted in names and wanted:
        return names.index(wanted)
    if wanted.isdigit() and 1 <= int(wanted) <= len(names):
        return int(wanted) - 1
    if not wanted and len(names) == 1:
        return 0
    listed = " ".join(names)[:400]
    give_up(f" has no column {wanted}; its columns are {listed}" if wanted else f" has several columns; name one, as in -c {names[0]}: {listed}")


def type_of(schema, i):
    """Returns tally's name of the type of column i: "decimal" for decimals."""
    found = schema.types[i]
    if isinstance(found, pyarrow.DictionaryType):
        found = found.value_type
    if pyarrow.types.is_decimal(found):
        return "decimal"
    if str(found) in TYPES:
        return TYPES[str(found)]
    if pyarrow.types.is_temporal(found):
        give_up(f": column {schema.names[i]} is of type {found}: that is a date or a time, and only numbers are reduced; "
                "cast it to int64")
    give_up(f": column {schema.names[i]} is of type {found}; a column of numbers is needed")


def check_missing(column, name, row):
    if column.null_count and missing == "keep":
        first = row + column.is_null().to_pylist().index(True)
        give_up(f": row {first + 1} of column {name} has no value; --skip-na leaves such rows out")


def plain(column):
    """Returns the column with the values of a dictionary, and with booleans as uint8."""
    if isinstance(column.type, pyarrow.DictionaryType):
        column = column.dictionary_decode()
    return column.cast(pyarrow.uint8()) if pyarrow.types.is_boolean(column.type) else column


def as_text(column):
    """Returns the column as text. The text of a number reads back as the same number."""
    if column.type == pyarrow.float16():
        column = column.cast(pyarrow.float32())
    return column if pyarrow.types.is_string(column.type) or pyarrow.types.is_large_string(column.type) else column.cast(pyarrow.string())


def key_text(column):
    if isinstance(column.type, pyarrow.DictionaryType):
        column = column.dictionary_decode()
    return as_text(column)


def write_elements(out, column):
    """Writes the elements that lie side by side in the column's memory."""
    if missing == "skip":
        column = column.drop_null()
        if pyarrow.types.is_floating(column.type):
            column = column.filter(compute.invert(compute.is_nan(column)))
    size = column.type.bit_width // 8
    if len(column):
        out.write(column.buffers()[1][column.offset * size:(column.offset + len(column)) * size])


def write_rows(out, columns):
    from pyarrow import csv
    table = pyarrow.table(columns, names=[str(i) for i in range(len(columns))])
    csv.write_csv(table, out, csv.WriteOptions(include_header=False))


def main():
    schema, batches = open_file()
    names, flags = schema.names, ""
    wanted_values, wanted_keys = values, keys
    if all_values and kind != "pairs" and all_values in names:
        wanted_values, flags = [all_values], " values"
    if all_keys and all_keys in names:
        wanted_keys, flags = [all_keys], flags + " keys"
    columns = [find(names, name) for name in wanted_values]
    types = [type_of(schema, i) for i in columns]
    by = [find(names, name) for name in wanted_keys]
    out, row = sys.stdout.buffer, 0
    out.write((",".join(types) + flags + "\n").encode())
    for batch in batches(columns + by):
        found = [plain(column) for column in batch[:len(columns)]]
        for i, column in zip(columns, found):
            check_missing(column, names[i], row)
        row += len(batch[0])
        if kind in ("rows", "pairs"):
            write_rows(out, [as_text(column) for column in found] + [key_text(column) for column in batch[len(columns):]])
        elif kind == "text" or types[0] == "decimal":
            out.write("".join(f"{text}\n" for text in as_text(found[0].drop_null()).to_pylist()).encode())
        else:
            write_elements(out, found[0])
    out.flush()


try:
    main()
except BrokenPipeError:  # nobody reads any longer
    sys.stderr.close()
    sys.exit(1)
except Exception as error:
    give_up(f" cannot be read: {' '.join(str(error).split())[:400]}")
