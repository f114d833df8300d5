"""Narrow products of 16 bits on tensor cores (sm90/tensor.cuh): every tile that they get, by how
blocks share loads and how operands lie, as a whole and as stretches of k.

What a tile has and the operand has not is not loaded: what lies there in shared memory is of
whatever ran before, here of products that are not numbers.
"""

import numpy as np
import pytest
from products import check_same, forced, halves, integers, layer, multiply, place

import pyvecgpu as vg

# Of rows and columns of a tile, and what two blocks share (nothing, a, b): by layout the products
# that are planned so (test_plans.py), where there are both a whole one and one of stretches.
NARROW = {
    (64, 32, 0): {
        "NN": [(219, 80, 64), (2090, 32, 4896)],
        "NT": [(68, 202, 80), (1195, 20, 4320)],
        "TN": [(80, 240, 64), (1216, 32, 4760)],
        "TT": [(200, 66, 64), (2435, 17, 4164)],
    },
    (64, 64, 0): {
        "NN": [(201, 72, 72), (271, 136, 4072)],
        "NT": [(71, 1441, 64), (593, 36, 4072)],
        "TN": [(216, 80, 64), (104, 221, 4068)],
        "TT": [(136, 957, 64), (108, 292, 4070)],
    },
    (64, 64, 1): {
        "NN": [(72, 240, 3240), (149, 328, 4680)],
        "NT": [(73, 1769, 968), (147, 380, 4408)],
        "TN": [(88, 248, 853), (136, 344, 4844)],
        "TT": [(72, 216, 3616), (296, 194, 4536)],
    },
    (64, 64, 2): {
        "NN": [(80, 200, 936), (1098, 40, 4696)],
        "NT": [(840, 33, 2296), (323, 130, 4408)],
        "TN": [(216, 152, 736), (1272, 40, 4083)],
        "TT": [(760, 40, 2568), (200, 294, 4784)],
    },
    (64, 128, 0): {
        "NN": [(3426, 96, 64), (533, 88, 4248)],
        "NT": [(3079, 67, 72), (292, 80, 4070)],
        "TN": [(3728, 72, 64), (136, 352, 4036)],
        "TT": [(2744, 79, 64), (215, 87, 4084)],
    },
    (64, 128, 1): {
        "NN": [(133, 4280, 976), (134, 1016, 4272)],
        "NT": [(131, 4476, 744), (142, 708, 4072)],
        "TN": [(136, 5368, 531), (24, 4392, 4056)],
        "TT": [(168, 4251, 664), (24, 3947, 4536)],
    },
    (64, 128, 2): {
        "NN": [(5270, 72, 424), (745, 88, 4136)],
        "NT": [(2615, 199, 360), (725, 103, 4936)],
        "TN": [(72, 4536, 464), (968, 72, 4442)],
        "TT": [(3640, 103, 584), (744, 108, 4440)],
    },
    (128, 64, 0): {
        "NN": [(68, 1736, 88), (75, 552, 4136)],
        "NT": [(66, 2862, 88), (68, 572, 4824)],
        "TN": [(72, 4144, 40), (72, 528, 4326)],
        "TT": [(72, 4602, 64), (80, 563, 4288)],
    },
    (128, 128, 0): {
        "NN": [(140, 5736, 64), (444, 200, 4464)],
        "NT": [(199, 4132, 64), (66, 2386, 4104)],
        "TN": [(3816, 200, 64), (576, 200, 4256)],
        "TT": [(3808, 194, 72), (104, 601, 4704)],
    },
    (128, 128, 1): {
        "NN": [(164, 5880, 392), (651, 152, 4616)],
        "NT": [(134, 5799, 536), (909, 143, 4952)],
        "TN": [(5736, 136, 508), (760, 152, 4536)],
        "TT": [(200, 4324, 536), (200, 653, 4424)],
    },
    (128, 128, 2): {
        "NN": [(149, 5928, 600), (198, 888, 4088)],
        "NT": [(194, 4363, 552), (148, 1042, 4928)],
        "TN": [(200, 5720, 598), (136, 1056, 4888)],
        "TT": [(152, 5991, 392), (152, 785, 4664)],
    },
    (128, 192, 0): {
        "NN": [(5967, 152, 64), (1687, 136, 4112)],
        "NT": [(5953, 132, 64), (1031, 135, 4416)],
        "TN": [(5872, 136, 120), (1456, 136, 4048)],
        "TT": [(5768, 145, 64), (1320, 139, 4200)],
    },
    (128, 192, 1): {
        "NT": [(80, 5987, 4944)],
        "TN": [(88, 4184, 4631)],
        "TT": [(88, 4108, 4968)],
    },
    (128, 192, 2): {
        "NN": [(1804, 136, 4488)],
        "NT": [(130, 1889, 4840)],
        "TN": [(1496, 152, 4880)],
        "TT": [(1480, 159, 4816)],
    },
    (128, 256, 2): {
        "NN": [(129, 3048, 4152)],
        "NT": [(129, 3355, 4296)],
        "TN": [(2488, 200, 4936)],
        "TT": [(152, 3019, 4376)],
    },
}


@pytest.mark.devices("cuda")
@pytest.mark.parametrize("tile", NARROW, ids=str)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_every_tile_of_narrow_products(device, rng, dtype, tile):
    """Exact, also where k is cut, and as layers."""
    nothing = vg.full((1408, 1024), np.nan, dtype=dtype, device=device)
    columns = vg.full((1024, 1536), np.nan, dtype=dtype, device=device)

    def leave_nan():  # in all of shared memory: 132 blocks with six stages of 32 KiB
        with forced(device, "tensor"):
            assert bool(vg.all(vg.isnan(multiply(nothing, columns))))

    for layout, products in NARROW[tile].items():
        for m, n, k in products:
            a, b = integers(rng, (m, k), dtype), integers(rng, (k, n), dtype)
            bias = integers(rng, (1, n), dtype)
            exact = a.astype(np.float32) @ b.astype(np.float32)  # sums are far below 2^24
            x = place(device, a, dtype, layout[0] == "T")
            y = place(device, b, dtype, layout[1] == "T")
            leave_nan()
            check_same(multiply(x, y), halves(exact, dtype))
            leave_nan()
            result = layer(x, y.T, place(device, bias, dtype)[0], "relu")
            check_same(result, halves(np.maximum(exact + bias, 0), dtype))
