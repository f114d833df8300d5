import torch, numpy as np, pyvecgpu as vg, sys
from torch.profiler import profile, ProfilerActivity
def prof(name, f, n=20):
    for _ in range(5): f()
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CUDA]) as p:
        for _ in range(n): f()
        torch.cuda.synchronize()
    print('==', name)
    for e in sorted(p.key_averages(), key=lambda e:-e.device_time_total)[:9]:
        print('   %-90s %9.2f us x%g' % (e.key[:90], e.device_time_total/n, e.count/n))
import pyvecgpu.bench.steps as st
rng=np.random.default_rng(1)
def emb():
    w=vg.asarray(rng.standard_normal((50000,512),dtype=np.float32),device='cuda'); w.requires_grad_()
    ids=st.chosen(8192,50000)
    idx=vg.asarray(ids,device='cuda'); g=vg.asarray(rng.standard_normal((8192,512),dtype=np.float32),device='cuda')
    y=vg.nn.functional.embedding(idx,w)
    def f():
        w.grad=None; y.backward(g,retain_graph=True)
    prof('embedding back', f)
    tw=torch.zeros((50000,512),device='cuda',requires_grad=True); ti=torch.tensor(ids,device='cuda'); tg=torch.tensor(g.numpy(),device='cuda')
    ty=torch.nn.functional.embedding(ti,tw)
    def tf():
        tw.grad=None; ty.backward(tg,retain_graph=True)
    prof('torch embedding back', tf)
def ln(rows,n=65536):
    x=vg.asarray(rng.standard_normal((rows,n),dtype=np.float32),device='cuda').requires_grad_(); w=vg.asarray(np.ones(n,np.float32),device='cuda').requires_grad_()
    g=vg.asarray(rng.standard_normal((rows,n),dtype=np.float32),device='cuda')
    y=vg.nn.functional.layer_norm(x,(n,),w,w,1e-5)
    def f():
        x.grad=None; w.grad=None; y.backward(g,retain_graph=True)
    prof('ln back %d %.0f us at 3.0'%(rows,rows*n*12/3e6), f, 10)
for t in (emb,lambda: ln(1024),lambda: ln(896),lambda: ln(448),lambda: ln(512),lambda:ln(960)):
    try: t()
    except Exception as e: print('ERR',repr(e)[:300])
