"""The rows of the operations: Python's table, the C library's and what calls do say the same."""

import itertools
from typing import NamedTuple

import helpers
import numpy as np
import pytest
from helpers import DTYPES, host, put
from references import lookup

import pyvecgpu as vg
from pyvecgpu.dtypes import CODES, inexact, promote, supported
from pyvecgpu.native import library
from pyvecgpu.native.abi import Operation

pytestmark = pytest.mark.devices("sim", "cuda")


class Row(NamedTuple):
    """A line of pvg_operations."""

    code: int
    name: str
    family: str
    domain: str
    result: str
    identity: str
    order: str

    def takes(self, dtype):
        return supported(dtype).kind in self.domain

    def gives(self, dtype):
        """The dtype of the result, of operands promoted to `dtype`."""
        if self.result == "float":
            return inexact(supported(dtype))
        if self.result == "wide" and not helpers.is_float(dtype):
            return np.dtype(np.uint64 if dtype.kind == "u" else np.int64)
        return {"bool": np.dtype(bool), "index": np.dtype(np.int64)}.get(self.result, dtype)


def rows(device):
    lines = library.load(device).pvg_operations().decode().splitlines()
    fields = [line.split(" ") for line in lines]
    return [Row(int(code), *rest) for code, *rest in fields]


def family(device, name):
    found = [row for row in rows(device) if row.family == name]
    assert found
    return found


def sample(device, dtype):
    return put(device, np.ones((2, 3), dtype))


def test_every_code_has_a_row(device):
    codes = [row.code for row in rows(device)]
    assert sorted(codes) == sorted(set(Operation) - {Operation.NONE})
    for row in rows(device):
        assert row.name == Operation(row.code).name.lower()
        assert row.family in ("unary", "binary", "reduce", "other"), row
        assert row.domain and row.domain == "".join(k for k in "buifc" if k in row.domain), row
        assert row.result in ("same", "float", "bool", "real", "wide", "index", "none"), row
        assert row.identity in (("none", "0", "1") if row.family == "reduce" else ("none",)), row
        assert row.order in ("none", "largest", "smallest"), row


def test_rows_are_those_of_the_table(device):
    from pyvecgpu.operations import ROWS

    def text(value):
        return "none" if value is None else str(value)

    table = [
        (int(r.code), r.name, r.family, r.domain, r.result, text(r.identity), text(r.order))
        for r in ROWS
    ]
    assert sorted(table) == sorted(tuple(row) for row in rows(device))


def test_supports_is_what_the_rows_say(device):
    loaded, known = library.load(device), {row.code: row for row in rows(device)}
    kinds = {code: dtype.kind for dtype, code in CODES.items()}
    for code, dtype in itertools.product(range(-1, 1000), range(-1, 20)):
        expected = code in known and kinds.get(dtype, "?") in known[code].domain
        assert loaded.pvg_supports(code, dtype) == expected, (code, dtype)


def test_unary_results(device):
    for row, dtype in itertools.product(family(device, "unary"), DTYPES):
        x = sample(device, dtype)
        if row.takes(dtype):
            assert lookup(row.name)(x).dtype == row.gives(dtype), (row, dtype)
        else:
            with helpers.refused(device, TypeError, x, match=f"{row.name}.*{dtype}"):
                lookup(row.name)(x)


def test_binary_results(device):
    """Of every two dtypes, and of a dtype and a Python number."""
    for row, a, b in itertools.product(family(device, "binary"), DTYPES, DTYPES):
        x, y, promoted = sample(device, a), sample(device, b), promote(a, b)
        if row.takes(promoted):
            assert lookup(row.name)(x, y).dtype == row.gives(promoted), (row, a, b)
        else:
            with helpers.refused(device, TypeError, x, y, match=f"{row.name}.*{promoted}"):
                lookup(row.name)(x, y)
    for row, dtype in itertools.product(family(device, "binary"), DTYPES):
        x = sample(device, dtype)
        if row.takes(dtype):
            same = dtype if dtype.kind != "b" else np.dtype(bool)
            assert lookup(row.name)(x, True).dtype == row.gives(same), (row, dtype)
        else:
            with helpers.refused(device, TypeError, x, match=f"{row.name}.*{dtype}"):
                lookup(row.name)(x, True)


def test_reductions_and_what_they_give_for_nothing(device):
    for row, dtype in itertools.product(family(device, "reduce"), DTYPES):
        function, nothing = getattr(vg, row.name), put(device, np.zeros((0, 3), dtype))
        assert row.takes(dtype)
        assert function(sample(device, dtype)).dtype == row.gives(dtype), (row, dtype)
        if row.identity == "none":
            with helpers.refused(device, ValueError, nothing, match="empty|zero-size"):
                function(nothing)
        else:
            value = np.nan if row.name == "mean" else int(row.identity)
            np.testing.assert_array_equal(
                host(function(nothing)).astype(np.float64), value, err_msg=f"{row} {dtype}"
            )


def test_order_says_what_is_picked(device):
    for row in family(device, "reduce"):
        picked = float(getattr(vg, row.name)(put(device, np.array([3.0, 7.0, 1.0, 5.0]))))
        if row.result == "index":
            picked = [3.0, 7.0, 1.0, 5.0][int(picked)]
        assert row.order == {7.0: "largest", 1.0: "smallest"}.get(picked, "none"), row
