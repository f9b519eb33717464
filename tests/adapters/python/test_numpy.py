"""frazil.numpy, frazil.pandas and frazil.polars: columns of IDs stay exact, or are refused."""

import datetime
import decimal
import io
import warnings

import frazil
import frazil.numpy
import frazil.pandas
import frazil.polars
import numpy
import pandas
import polars
import pyarrow
import pytest

LAYOUT = frazil.Layout("twitter")
GENERATOR = frazil.Snowflake("twitter", datacenter=1, worker=2)
# Neighbouring IDs that round to the same float.
A, B, C = 1541815603606036480, 1541815603606036481, 1541815603606036607
LARGEST = 2**63 - 1
TIME = LAYOUT.decode(A).time
assert float(A) == float(B) == float(C)


@pytest.mark.parametrize(
    "values",
    [
        [A, B, LARGEST, 0],
        [str(A), str(B), str(LARGEST), "0"],
        (A, str(B), numpy.int64(LARGEST), numpy.uint8(0)),
        iter([A, B, LARGEST, 0]),
        numpy.array([A, B, LARGEST, 0]),
        numpy.array([A, B, LARGEST, 0], dtype="uint64"),
        numpy.array([A, B, LARGEST, 0], dtype=">i8"),
        numpy.array([A, B, LARGEST, 0], dtype=object),
        numpy.array([str(A), str(B), str(LARGEST), "0"]),
        numpy.array([str(A), str(B), str(LARGEST), "0"], dtype=object),
        numpy.array([A, 1, B, 1, LARGEST, 1, 0])[::2],
        numpy.ma.array([A, B, LARGEST, 0]),
        pandas.Series([A, B, LARGEST, 0], dtype="Int64"),
        polars.Series([A, B, LARGEST, 0]),
    ],
    ids=lambda values: type(values).__name__,
)
def test_arrays(values):
    ids = frazil.numpy.ids(values)
    assert ids.dtype == "int64" and ids.tolist() == [A, B, LARGEST, 0]
    assert ids.astype("U19").tolist() == [str(A), str(B), str(LARGEST), "0"]
    assert frazil.numpy.ids(ids.astype("U19")).tolist() == ids.tolist()
    ids[0] = 5
    assert frazil.numpy.ids([]).tolist() == [] and frazil.numpy.ids([]).dtype == "int64"


@pytest.mark.parametrize("values", [numpy.array([1, 2], dtype="int8"), numpy.array([1, 2], dtype="uint32"), range(1, 3), {1: "", 2: ""}])
def test_integers_of_fewer_bits(values):
    assert frazil.numpy.ids(values).tolist() == [1, 2]


def test_an_array_is_copied():
    first = GENERATOR.array(3)
    second = frazil.numpy.ids(first)
    second[0] = 0
    assert first[0] != 0


@pytest.mark.parametrize(
    "values, error",
    [
        (numpy.array([1.0]), frazil.errors.WrongTypeError),
        (numpy.array([1.5], dtype="float32"), frazil.errors.WrongTypeError),
        (numpy.array([1], dtype="float16"), frazil.errors.WrongTypeError),
        ([1.0], frazil.errors.WrongTypeError),
        ([A, None], frazil.errors.WrongTypeError),
        (numpy.array([A, None]), frazil.errors.WrongTypeError),
        (numpy.array([A, numpy.nan], dtype=object), frazil.errors.WrongTypeError),
        (numpy.ma.array([A, B], mask=[False, True]), frazil.errors.WrongTypeError),
        (numpy.array(["2026-01-01", "NaT"], dtype="datetime64[ms]"), frazil.errors.WrongTypeError),
        (numpy.array([True]), frazil.errors.WrongTypeError),
        (numpy.array([1j]), frazil.errors.WrongTypeError),
        (numpy.array([b"1"]), frazil.errors.WrongTypeError),
        (numpy.array([[1]]), frazil.errors.WrongTypeError),
        ([decimal.Decimal("1.5")], frazil.errors.WrongTypeError),
        (5, frazil.errors.WrongTypeError),
        ("5", frazil.errors.WrongTypeError),
        (None, frazil.errors.WrongTypeError),
        (numpy.array([-1]), frazil.errors.IdInvalidError),
        (numpy.array([2**63], dtype="uint64"), frazil.errors.IdInvalidError),
        ([2**64], frazil.errors.IdInvalidError),
        (["1e18"], frazil.errors.IdInvalidError),
        (["007"], frazil.errors.IdInvalidError),
        ([""], frazil.errors.IdInvalidError),
    ],
    ids=lambda value: repr(value)[:40],
)
def test_arrays_without_ids(values, error):
    with pytest.raises(frazil.FrazilError) as refused:
        frazil.numpy.ids(values)
    assert type(refused.value) is error


PANDAS = [
    pandas.Series([A, None, B, LARGEST], dtype="Int64"),
    pandas.Series([A, None, B, LARGEST], dtype="UInt64"),
    pandas.Series([A, None, B, LARGEST], dtype="object"),
    pandas.Series([A, float("nan"), B, LARGEST], dtype="object"),
    pandas.Series([A, pandas.NaT, B, LARGEST], dtype="object"),
    pandas.Series([str(A), None, str(B), str(LARGEST)]),
    pandas.Series([str(A), None, str(B), str(LARGEST)], dtype="string"),
    pandas.Series([str(A), None, str(B), str(LARGEST)], dtype="string[pyarrow]"),
    pandas.Series([str(A), None, str(B), str(LARGEST)], dtype="category"),
    pandas.Series([A, None, B, LARGEST], dtype="int64[pyarrow]"),
    pandas.Series([A, None, B, LARGEST], dtype="uint64[pyarrow]"),
    [A, None, str(B), LARGEST],
]


@pytest.mark.parametrize("column", PANDAS, ids=lambda column: str(getattr(column, "dtype", "list")))
def test_columns_of_pandas(column):
    ids = frazil.pandas.ids(column)
    assert ids.dtype == "Int64" and ids.tolist() == [A, pandas.NA, B, LARGEST]
    assert ids.astype("string").tolist() == [str(A), pandas.NA, str(B), str(LARGEST)]
    assert frazil.pandas.ids(ids.astype("string")).equals(ids)

    parts = frazil.pandas.decode(column, LAYOUT)
    assert parts.columns.tolist() == ["time", "datacenter", "worker", "sequence", "tick"]
    assert parts["time"].dt.tz == datetime.UTC and parts["time"].iloc[1] is pandas.NaT
    assert parts["time"].iloc[0] == parts["time"].iloc[2] == TIME
    for name in parts.columns[1:]:
        assert parts[name].dtype == "Int64"
        assert parts[name].tolist() == [
            pandas.NA if id is None else getattr(LAYOUT.decode(id), name) for id in (A, None, B, LARGEST)
        ]  # fmt: skip


def test_a_column_of_pandas_keeps_its_index_and_its_name():
    table = pandas.DataFrame({"id": GENERATOR.array(4)}, index=["a", "b", "b", "c"])
    assert table["id"].dtype == "int64"
    ids = frazil.pandas.ids(table["id"])
    assert ids.name == "id" and ids.index.tolist() == ["a", "b", "b", "c"] and ids.tolist() == table["id"].tolist()
    parts = frazil.pandas.decode(table["id"], GENERATOR.layout)
    assert parts.index.tolist() == ["a", "b", "b", "c"] and parts["worker"].tolist() == [2] * 4
    table["created"] = parts["time"]
    assert table["created"].dt.tz == datetime.UTC and table["id"].tolist() == ids.tolist()
    parts["worker"].array[0] = pandas.NA
    assert parts["sequence"].notna().all() and ids.notna().all(), "columns share no memory"


def test_a_change_of_one_part_changes_no_other():
    parts = frazil.pandas.decode([A, None], LAYOUT)
    parts.loc[1, "worker"] = 3
    assert parts["worker"].tolist() == [26, 3] and parts["sequence"].tolist() == [0, pandas.NA]


@pytest.mark.parametrize(
    "column",
    [
        pandas.Series([A, None]),
        pandas.Series([float(A)]),
        pandas.Series([A, None], dtype="Float64"),
        pandas.Series([float(A), None], dtype="double[pyarrow]"),
        pandas.read_csv(io.StringIO(f"id,x\n{A},1\n,2"))["id"],
    ],
    ids=lambda column: str(column.dtype),
)
def test_floats_of_pandas_are_refused_with_the_remedy(column):
    for call in frazil.pandas.ids, lambda column: frazil.pandas.decode(column, LAYOUT):
        with pytest.raises(frazil.errors.WrongTypeError, match=r"floats have rounded its IDs: .*'Int64'"):
            call(column)
    nullable = pandas.read_csv(io.StringIO(f"id,x\n{B},1\n,2"), dtype={"id": "Int64"})["id"]
    assert frazil.pandas.ids(nullable).tolist() == [B, pandas.NA]


@pytest.mark.parametrize(
    "column", [pandas.Series([None, float("nan")]), pandas.Series([None, None]), pandas.Series([], dtype="float64"), []]
)
def test_columns_of_pandas_without_ids(column):
    ids = frazil.pandas.ids(column)
    assert ids.dtype == "Int64" and len(ids) == len(column) and ids.isna().all()
    parts = frazil.pandas.decode(column, LAYOUT)
    assert len(parts) == len(column) and parts.isna().all().all() and parts["time"].dt.tz == datetime.UTC


@pytest.mark.parametrize(
    "values, error, says",
    [
        ([None, "x"], frazil.errors.IdInvalidError, '"x" is not an ID'),
        ([None, ""], frazil.errors.IdInvalidError, "0 characters"),
        ([None, -1], frazil.errors.IdInvalidError, "negative"),
        ([None, 2**63], frazil.errors.IdInvalidError, r"ids\[1\]=9223372036854775808"),
        ([None, 1.5], frazil.FrazilError, r"ids\[1\]"),
        ([None, True], frazil.errors.WrongTypeError, r"ids\[1\]"),
        ([None, b"1"], frazil.errors.WrongTypeError, r"ids\[1\]"),
        ([None, datetime.date(2026, 1, 1)], frazil.errors.WrongTypeError, r"ids\[1\]"),
    ],
    ids=repr,
)
def test_values_without_ids_in_pandas(values, error, says):
    with pytest.raises(error, match=says):
        frazil.pandas.ids(values)
    with pytest.raises(error, match=says):
        frazil.pandas.ids(pandas.Series(values, dtype="object"))


def test_other_types_of_pandas_are_refused():
    for column in (
        pandas.Series(pandas.to_datetime(["2026-01-01", None])),
        pandas.Series([True, False]),
        pandas.Series([True, None], dtype="boolean"),
    ):
        with pytest.raises(frazil.errors.WrongTypeError):
            frazil.pandas.ids(column)


POLARS = [
    polars.Series("id", [A, None, B, LARGEST]),
    polars.Series("id", [A, None, B, LARGEST], dtype=polars.UInt64),
    polars.Series("id", [str(A), None, str(B), str(LARGEST)]),
    polars.Series("id", [str(A), None, str(B), str(LARGEST)], dtype=polars.Categorical),
]


@pytest.mark.parametrize("column", POLARS, ids=lambda column: str(column.dtype))
def test_columns_of_polars(column):
    ids = frazil.polars.ids(column)
    assert ids.dtype == polars.Int64 and ids.name == "id" and ids.to_list() == [A, None, B, LARGEST]
    assert ids.cast(polars.String).to_list() == [str(A), None, str(B), str(LARGEST)]
    assert frazil.polars.ids(ids.cast(polars.String)).to_list() == ids.to_list()

    parts = frazil.polars.decode(column, LAYOUT)
    assert parts.columns == ["time", "datacenter", "worker", "sequence", "tick"]
    assert parts.schema["time"] == polars.Datetime("ms", "UTC") and set(parts.dtypes[1:]) == {polars.Int64}
    for row, id in zip(parts.iter_rows(named=True), [A, None, B, LARGEST], strict=True):
        assert row == (dict.fromkeys(parts.columns) if id is None else LAYOUT.decode(id)._asdict())


def test_a_new_column_of_polars():
    table = polars.DataFrame({"id": GENERATOR.array(3)})
    table = table.hstack(frazil.polars.decode(table["id"], GENERATOR.layout))
    assert table["worker"].to_list() == [2] * 3 and table["id"].dtype == polars.Int64
    assert frazil.polars.ids(table["id"]).to_list() == table["id"].to_list()


@pytest.mark.parametrize("lazy", [False, True], ids=["eager", "lazy"])
def test_expressions_of_polars(lazy):
    texts = polars.DataFrame({"id": [str(A), str(LARGEST)], "parent": [None, str(B)]})
    table = texts.lazy() if lazy else texts

    def run(query):
        return query.collect() if lazy else query

    numbers = run(table.with_columns(frazil.polars.ids(polars.col("id", "parent"))))
    assert numbers.schema == {"id": polars.Int64, "parent": polars.Int64}
    assert numbers.rows() == [(A, None), (LARGEST, B)]
    # The parts of two columns in one table.
    query = table.with_columns(
        frazil.polars.decode(polars.col("id"), LAYOUT).alias("parts"),
        frazil.polars.decode(polars.col("parent"), LAYOUT).alias("parts_of_parent").name.prefix_fields("parent_"),
    ).unnest("parts", "parts_of_parent")
    expected = frazil.polars.decode(texts["parent"], LAYOUT)
    expected = texts.hstack(frazil.polars.decode(texts["id"], LAYOUT)).hstack(expected.rename(lambda name: f"parent_{name}"))
    assert query.collect_schema() == expected.schema and run(query).equals(expected)
    recent = table.filter(frazil.polars.decode(polars.col("id"), LAYOUT).struct.field("time") <= TIME)
    assert run(recent.select("id")).to_series().to_list() == [str(A)]
    assert run(table.head(0).select(frazil.polars.decode(polars.col("id"), LAYOUT))).height == 0


@pytest.mark.parametrize("call", [frazil.polars.ids, lambda column: frazil.polars.decode(column, LAYOUT)], ids=["ids", "decode"])
@pytest.mark.parametrize(
    "values, error", [([float(A)], frazil.errors.WrongTypeError), (["007"], frazil.errors.IdInvalidError)], ids=["float", "text"]
)
def test_an_expression_that_holds_no_ids(call, values, error):
    with pytest.raises((error, polars.exceptions.ComputeError), match="floats have rounded its IDs|leading zeros"):
        polars.DataFrame({"id": values}).select(call(polars.col("id")))


@pytest.mark.parametrize("dtype", [polars.Float64, polars.Float32])
def test_floats_of_polars_are_refused_with_the_remedy(dtype):
    for values in [float(A)], [float(A), None], [float("nan")]:
        column = polars.Series("id", values, dtype=dtype)
        for call in frazil.polars.ids, lambda column: frazil.polars.decode(column, LAYOUT):
            with pytest.raises(frazil.errors.WrongTypeError, match="floats have rounded its IDs: .*polars.Int64"):
                call(column)


@pytest.mark.parametrize("dtype", [polars.Int64, polars.String, polars.Float64, polars.Null, polars.Int8])
@pytest.mark.parametrize("values", [[], [None, None]], ids=repr)
def test_columns_of_polars_without_ids(dtype, values):
    column = polars.Series("id", values, dtype=dtype)
    assert frazil.polars.ids(column).dtype == polars.Int64 and frazil.polars.ids(column).to_list() == values
    parts = frazil.polars.decode(column, LAYOUT)
    assert (
        parts.height == len(values)
        and parts.schema["time"] == polars.Datetime("ms", "UTC")
        and parts.null_count().row(0) == (len(values),) * 5
    )


@pytest.mark.parametrize(
    "column, error",
    [
        (polars.Series([None, -1]), frazil.errors.IdInvalidError),
        (polars.Series([None, 2**63], dtype=polars.UInt64), frazil.errors.IdInvalidError),
        (polars.Series([None, "007"]), frazil.errors.IdInvalidError),
        (polars.Series([None, True]), frazil.errors.WrongTypeError),
        (polars.Series([decimal.Decimal("1.5")]), frazil.errors.WrongTypeError),
        (polars.Series([b"1"]), frazil.errors.WrongTypeError),
        (polars.Series([datetime.date(2026, 1, 1), None]), frazil.errors.WrongTypeError),
        (polars.Series([[1], None]), frazil.errors.WrongTypeError),
    ],
    ids=lambda value: str(getattr(value, "dtype", "")),
)
def test_columns_without_ids_in_polars(column, error):
    with pytest.raises(frazil.FrazilError) as refused:
        frazil.polars.ids(column)
    assert type(refused.value) is error


TEXTS = [str(A), None, "0", str(LARGEST), "7", None, f"{B:019}", "0" * 19, "12345678", "123456789012"] * 30
NUMBERS = [None if text is None else int(text) for text in TEXTS]


def arrow_columns():
    """Yields texts in each of Arrow's forms: offsets of 32 and 64 bits, views, slices with an offset, and chunks."""
    for kind in (pyarrow.string(), pyarrow.large_string(), *([pyarrow.string_view()] if hasattr(pyarrow, "string_view") else [])):
        whole = pyarrow.array(["x", None, *TEXTS, "x"], pyarrow.string()).cast(kind)
        sliced = whole.slice(2, len(TEXTS))
        yield sliced
        yield pyarrow.chunked_array([sliced.slice(0, 9), sliced.slice(9, 0), sliced.slice(9, 1), sliced.slice(10)])


def test_text_in_the_memory_of_arrow():
    for column in arrow_columns():
        series = pandas.Series(column, dtype=pandas.ArrowDtype(column.type))
        assert frazil.pandas.ids(series).tolist() == [pandas.NA if number is None else number for number in NUMBERS]
        assert frazil.pandas.ids(series[7:99]).tolist() == [pandas.NA if number is None else number for number in NUMBERS[7:99]]
        known = pyarrow.array(["x", *(text for text in TEXTS if text is not None)]).cast(column.type).slice(1)
        assert frazil.numpy.ids(known).tolist() == [number for number in NUMBERS if number is not None]
        assert frazil.numpy.ids(known.slice(3, 5)).tolist() == [number for number in NUMBERS if number is not None][3:8]
        with pytest.raises(frazil.errors.WrongTypeError):
            frazil.numpy.ids(column)
    whole = polars.Series("id", ["x", *TEXTS, "x"])
    column = whole.slice(1, len(TEXTS))
    for each in (column, column.slice(0, 9).append(column.slice(9)), polars.concat([column[:1], column[1:2], column[2:]], rechunk=False)):
        assert frazil.polars.ids(each).to_list() == NUMBERS
        assert frazil.polars.decode(each, LAYOUT)["tick"].to_list() == [None if number is None else number >> 22 for number in NUMBERS]
    for dtype in "string[pyarrow]", "str":
        series = pandas.Series(TEXTS, dtype=dtype)
        assert frazil.pandas.ids(series[3:20]).tolist() == [pandas.NA if number is None else number for number in NUMBERS[3:20]]


def test_text_at_odd_addresses():
    """A file or a message that is read where it lies need not align its columns."""
    for column in arrow_columns():
        if isinstance(column, pyarrow.ChunkedArray):
            continue
        odd = [buffer and pyarrow.py_buffer(b"x" + buffer.to_pybytes()).slice(1) for buffer in column.buffers()]
        column = pyarrow.Array.from_buffers(column.type, len(column), odd, offset=column.offset)
        series = pandas.Series(column, dtype=pandas.ArrowDtype(column.type))
        assert frazil.pandas.ids(series).tolist() == [pandas.NA if number is None else number for number in NUMBERS]


class Once:
    """A column that can be read once, and returns the same stream at each call."""

    def __init__(self, column):
        self.stream = column.__arrow_c_stream__()

    def __arrow_c_stream__(self, requested_schema=None):
        return self.stream


@pytest.mark.skipif(not hasattr(pyarrow.ChunkedArray, "__arrow_c_stream__"), reason="it has no streams yet")
def test_a_stream_that_was_read_is_refused():
    """It was an empty column if frazil had read it, and ended the process if another library had."""
    column = pyarrow.chunked_array([["7"], ["8"]])
    ours, theirs = Once(column), Once(column)
    assert frazil.numpy.ids(ours).tolist() == [7, 8]
    assert pyarrow.chunked_array(theirs).equals(column)
    for taken in (ours, theirs):
        with pytest.raises(frazil.errors.WrongTypeError, match="ids must be a one-dimensional array .* not Once"):
            frazil.numpy.ids(taken)


def test_bad_texts_in_the_memory_of_arrow_are_counted():
    for text in ("", "007", "1e3", "-1", " 1", "9223372036854775808", "1" * 20, "1234567a", "\u0667", "a" * 500):
        texts = [*TEXTS[:11], text, *TEXTS, text, "x"]
        row = 11
        for call, column in (
            (frazil.pandas.ids, pandas.Series(texts, dtype="string[pyarrow]")),
            (frazil.polars.ids, polars.Series(texts)),
            (frazil.numpy.ids, pyarrow.array([each for each in texts if each is not None])),
        ):
            row = 9 if call is frazil.numpy.ids else 11
            with pytest.raises(
                frazil.errors.IdInvalidError, match=rf"is not an ID in decimal: .*; ids\[{row}\] is the first of 3 bad rows"
            ):
                call(column)


@pytest.mark.parametrize("column", [[A], numpy.array([A]), polars.DataFrame({"id": [A]}), None], ids=lambda value: type(value).__name__)
def test_values_that_are_not_a_series_of_polars(column):
    for call in frazil.polars.ids, lambda column: frazil.polars.decode(column, LAYOUT):
        with pytest.raises(frazil.errors.WrongTypeError, match=r"must be a Series or an expression: table\['id'\], polars\.col\('id'\)"):
            call(column)


@pytest.mark.filterwarnings("error")
def test_no_adapter_uses_what_the_current_numpy_deprecates():
    for column in ([A, None], [None, None], [], pandas.array([A, None], dtype="Int64"), numpy.array([A, 7])):
        decoded = frazil.pandas.decode(column, LAYOUT)
        assert decoded["time"].isna().tolist() == frazil.pandas.ids(column).isna().tolist()
    assert frazil.polars.decode(polars.Series([A, None]), LAYOUT).height == 2
    assert frazil.numpy.ids([str(A), 7]).tolist() == [A, 7]


def test_an_id_of_another_layout():
    few = frazil.Layout("js53")
    for call in (
        lambda: few.decode_many([LARGEST]),
        lambda: frazil.pandas.decode([LARGEST], few),
        lambda: frazil.polars.decode(polars.Series([LARGEST]), few),
    ):
        with pytest.raises(frazil.errors.IdInvalidError):
            call()


def test_columns_of_integers_that_floats_have_rounded_are_warned_of():
    """`combine_first` and a late `astype` leave rounded integers. Exact IDs that end with zeros give no warning."""
    layout = frazil.Layout("twitter")
    start = datetime.datetime(2024, 3, 1, tzinfo=datetime.UTC)
    exact = [
        layout.compose(start + datetime.timedelta(milliseconds=77 * n), datacenter=1, worker=7, sequence=n * 37 % 4096) for n in range(2000)
    ]
    column = pandas.Series(exact)
    rounded = column.where(column.index != 3).dropna().astype("int64")
    late = pandas.Series(exact[:1000]).astype("float64").astype("int64")
    for values in (rounded, late):
        with pytest.warns(UserWarning, match="floats have rounded IDs of this column"):
            frazil.pandas.ids(values)
    zero = [layout.compose(start + datetime.timedelta(milliseconds=77 * n), datacenter=1, worker=7, sequence=0) for n in range(2000)]
    blocks = [
        layout.compose(start + datetime.timedelta(milliseconds=n // 8), datacenter=1, worker=7, sequence=n % 8 * 64) for n in range(2000)
    ]
    machines = [
        frazil.Layout("sonyflake").compose(start + datetime.timedelta(days=400, seconds=n), machine=4, sequence=n % 256)
        for n in range(2000)
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for values in (exact, zero, blocks, machines, [1, 2], []):
            frazil.pandas.ids(pandas.Series(values, dtype="int64"))
