"""TF32 products whose operands are read as they lie: checked against float64, then timed."""
import itertools, sys, time
import numpy as np, torch
import pyvecgpu as vg

from pyvecgpu.native.abi import MatmulKernel, Option

torch.backends.cuda.matmul.allow_tf32 = True
dev = vg.Device("cuda").backend.library
gen = torch.Generator(device="cuda").manual_seed(1)


def force(name):
    dev.set_option(Option.OPTION_MATMUL_KERNEL, MatmulKernel["MATMUL_" + name.upper()])


def tf32(x):  # to the nearest even of 11 bits
    u = x.view(np.uint32).astype(np.uint64)
    return ((u + 0xFFF + ((u >> 13) & 1)) & 0xFFFFE000).astype(np.uint32).view(np.float32)


def place(x, trans, offset, gap):
    stored = np.ascontiguousarray(x.swapaxes(-1, -2) if trans else x)
    r, c = stored.shape[-2:]
    room = np.full((*stored.shape[:-1], c + gap), np.nan, np.float32)
    room[..., :c] = stored
    flat = vg.asarray(np.concatenate([np.full(offset, np.nan, np.float32), room.ravel()]),
                      device="cuda")
    view = vg.reshape(flat[offset:], room.shape)[..., :c]
    return vg.permute_dims(view, (*range(x.ndim - 2), -1, -2)) if trans else view


def check():
    rng = np.random.default_rng(0)
    shapes = [(1, 1, 1), (17, 19, 5), (33, 70, 64), (49, 65, 63), (97, 100, 31), (192, 192, 100),
              (193, 40, 130), (200, 9, 330), (130, 385, 97), (600, 500, 50), (1000, 33, 64),
              (160, 160, 9001), (183, 39, 20760), (72, 56, 33001), (48, 24, 5000), (200, 128, 7777)]
    cases, worst, bad = 0, 0.0, []
    for forced, items in (("tensor_tf32", 1), ("tensor_tf32", 3), ("tensor_tf32", 140), ("auto", 1)):
        force(forced)
        for m, n, k in shapes:
            if items > 3 and m * n * k > 3e5 and (m, n, k) != (97, 100, 31): continue
            if items == 3 and m * n * k > 3e7: continue
            for (ta, tb), (off, gap) in itertools.product(
                    itertools.product((0, 1), (0, 1)), ((0, 0), (1, 1), (2, 2))):
                a = rng.standard_normal((items, m, k), dtype=np.float32)
                b = rng.standard_normal((items, k, n), dtype=np.float32)
                a, b = (a[0], b[0]) if items == 1 else (a, b)
                out = vg.full((*a.shape[:-1], n + gap), float("nan"), dtype=vg.float32,
                              device="cuda")[..., :n]
                x, y = place(a, ta, off, gap), place(b, tb, off, gap)
                vg.matmul(x, y, precision="tf32", out=out)
                c = out.numpy()
                ta_, tb_ = tf32(a).astype("d"), tf32(b).astype("d")
                size = np.abs(ta_) @ np.abs(tb_)
                e = float(np.max(np.abs(c - ta_ @ tb_) / ((k / 4 + 8) * 2.0**-24 * size)))
                small = forced == "auto" and m <= 32 and n <= 32 and k <= 32  # "tiny": not rounded
                again = vg.matmul(x, y, precision="tf32").numpy()
                if not small and (not e <= 1 or not np.array_equal(again, c)):
                    bad.append((forced, items, m, n, k, ta, tb, off, gap, round(e, 3)))
                worst, cases = max(worst, 0 if small else e), cases + 1
    force("auto")
    print(f"checked {cases}: worst {worst:.3f} of the bound, wrong {len(bad)}", bad[:6])


def timed_ours(call, repeat=25):
    for _ in range(4): call()
    best = 1e9
    for _ in range(5):
        sync(); t = time.perf_counter()
        for _ in range(repeat): call()
        sync(); best = min(best, (time.perf_counter() - t) / repeat * 1e6)
    return best


def sync(): torch.cuda.synchronize()  # the whole device


def timed_torch(call, repeat=25):
    return timed_ours(call, repeat)


CASES = """160x160x42552 TN,120x176x46512 TN,168x144x45968 TN,125x175x26937 TN,92x56x43132 TN
144x104x95432 TT,72x56x128664 NN,183x39x20760 NN,184x168x143744 TN,155x175x147647 NT,112x128x24744 NT
48x24x50848 NT,168x152x173392 NN,152x152x28520 NT,200x128x115696 TT,72x840x6160 TN,65x1230x8267 TT
184x3840x1496 TT,194x2884x1954 TT,128x5072x2544 NN,76x3209x852 NT,200x616x864 TT,42x1917x4682 NT
48x1904x2984 NN,546x48x7496 TN,1498x45x1208 TN,800x60x5807 NT,8232x56x5360 TN,3088x48x1680 NT
1864x56x680 NN,1192x8560x40 TN,2176x5448x40 TN,5427x2259x32 TT,4072x7840x56 NT,3256x616x48 TT
1392x696x13 NT,944x6096x56 TN,200x200x200 TT,102x102x102 TN"""


def main():
    check()
    ratios = []
    for text in CASES.replace("\n", ",").split(","):
        sizes, layout = text.split()
        m, n, k = map(int, sizes.split("x"))
        a = torch.randn((m, k) if layout[0] == "N" else (k, m), device="cuda", generator=gen)
        b = torch.randn((k, n) if layout[1] == "N" else (n, k), device="cuda", generator=gen)
        ta, tb = (a if layout[0] == "N" else a.T), (b if layout[1] == "N" else b.T)
        x, y = (vg.asarray(one.cpu().numpy(), device="cuda") for one in (a, b))
        x, y = (x if layout[0] == "N" else x.T), (y if layout[1] == "N" else y.T)
        theirs = timed_torch(lambda: torch.matmul(ta, tb))
        auto = timed_ours(lambda: vg.matmul(x, y, precision="tf32"))
        floor = ((m + n) * k + m * n) * 4 / 3.0e6
        exact = (tf32(ta.cpu().numpy()).astype("d") @ tf32(tb.cpu().numpy()).astype("d")
                 if (m + n) * k < 6e6 and m * n * k < 4e9 else None)
        note = ""
        if exact is not None:
            e = np.abs(vg.matmul(x, y, precision="tf32").numpy() - exact).max() / np.sqrt(k)
            note = f" error {e:.1e}"
        force("tensor"); wgmma = timed_ours(lambda: vg.matmul(x, y, precision="tf32"), 10)
        force("auto")
        ratios.append(theirs / auto)
        print(f"{text:19s} ours {auto:6.1f} torch {theirs:6.1f} = {theirs / auto:.2f}  floor "
              f"{floor:5.1f}  wgmma {wgmma:6.1f}{note}")
    print("geometric mean %.3f" % np.exp(np.mean(np.log(ratios))))


main()
