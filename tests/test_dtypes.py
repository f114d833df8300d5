"""dtypes: names and promotion; Python, C and NumPy agree."""

import itertools

import helpers
import numpy as np
import pytest
from helpers import ALL_DTYPES, put

import pyvecgpu as vg
from pyvecgpu.dtypes import CODES, promote, supported
from pyvecgpu.native import library
from pyvecgpu.native.abi import DType


def test_names_are_numpys():
    for dtype, code in CODES.items():
        assert getattr(vg, dtype.name) is dtype and dtype.name in vg.__all__
        assert DType(code).name == dtype.name.upper()
    tested = {supported(dtype) for dtype in ALL_DTYPES}
    assert len(ALL_DTYPES) == len(tested)
    assert set(CODES) - tested == (set() if helpers.BFLOAT16 else {vg.bfloat16})


@pytest.mark.devices("sim", "cuda")
def test_promotion_is_numpys(device):
    loaded = library.load(device)
    codes = {dtype: CODES[supported(dtype)] for dtype in ALL_DTYPES}
    for a, b in itertools.product(ALL_DTYPES, ALL_DTYPES):
        expected = helpers.result_type(a, b)
        assert promote(a, b) == expected
        assert loaded.pvg_promote(codes[a], codes[b]) == codes[expected], (a, b)
        assert (put(device, np.ones(1, a)) * put(device, np.ones(1, b))).dtype == expected
    for code in set(range(-1, 100)) - set(CODES.values()):
        assert loaded.pvg_promote(code, 0) == loaded.pvg_promote(0, code) == -1
        assert loaded.pvg_dtype_size(code) == 0
    for dtype, code in CODES.items():
        assert loaded.pvg_dtype_size(code) == dtype.itemsize


@pytest.mark.parametrize(
    "dtype", ["float32", np.float32, np.dtype("<f4"), np.dtype(">f4"), float, int, bool, "uint64"]
)
def test_what_counts_as_a_dtype(device, dtype):
    assert vg.zeros(1, dtype=dtype, device=device).dtype == np.dtype(dtype).newbyteorder("=")


@pytest.mark.parametrize(
    "dtype", ["float8", "nonsense", "longdouble", object, 3, "m8[s]", "U4", [("a", "i4")]], ids=str
)
def test_what_does_not(device, dtype):
    with helpers.refused(device, TypeError):
        vg.zeros(1, dtype=dtype, device=device)
