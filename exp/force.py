import json, re, sys, time
import numpy as np, torch, pyvecgpu as vg
from pyvecgpu.bench import model
from pyvecgpu.native import library
from pyvecgpu.native.abi import MatmulKernel, Option
lib=library.load('cuda')
big={}
def pool(dt):
    if dt not in big:
        t=torch.randn(2**27 if dt=='float64' else 2**28,device='cuda',dtype=torch.float32).to(getattr(torch,dt)) if dt!='float64' else torch.randn(2**26,device='cuda',dtype=torch.float64)
        big[dt]=(t,vg.from_dlpack(t))
    return big[dt]
def mats(m,n,k,lay,dt):
    t,v=pool(dt); o=(m*k+63)//64*64
    sa=(m,k) if lay[0]=='N' else (k,m); sb=(k,n) if lay[1]=='N' else (n,k)
    ta,tb=t[:m*k].view(sa),t[o:o+n*k].view(sb); va,vb=v[:m*k].reshape(sa),v[o:o+n*k].reshape(sb)
    if lay[0]=='T': ta,va=ta.T,va.T
    if lay[1]=='T': tb,vb=tb.T,vb.T
    return ta,tb,va,vb
ev=lambda: torch.cuda.Event(enable_timing=True)
def tt(f,sync):
    for _ in range(3): f()
    sync(); best=1e9
    for _ in range(5):
        t=time.perf_counter()
        for _ in range(20): f()
        sync(); best=min(best,(time.perf_counter()-t)/20)
    return best*1e6
cases=json.load(open('exp/products.json'))
for grp,text in cases:
    m,n,k,lay=re.match(r'(\d+)x(\d+)x(\d+) (\w\w)',text).groups(); m,n,k=int(m),int(n),int(k)
    kind=grp.split()[1]; dt='float32' if kind=='tf32' else kind
    torch.backends.cuda.matmul.allow_tf32 = kind=='tf32'
    ta,tb,va,vb=mats(m,n,k,lay,dt)
    fmt=model.FORMATS['tf32' if kind=='tf32' else 'float32' if dt=='float32' else dt]
    prec='tf32' if kind=='tf32' else None
    res={'torch':tt(lambda: torch.matmul(ta,tb),torch.cuda.synchronize),'auto':tt(lambda: vg.matmul(va,vb,precision=prec),vg.synchronize)}
    for name in fmt[2]:
        if name in('tiled','tiny','gemv','thin') and not (min(m,n)<=16): continue
        lib.set_option(Option.OPTION_MATMUL_KERNEL, MatmulKernel['MATMUL_'+name.upper()])
        try: res[name]=tt(lambda: vg.matmul(va,vb,precision=prec),vg.synchronize)
        except Exception as e: pass
        lib.set_option(Option.OPTION_MATMUL_KERNEL, MatmulKernel.MATMUL_AUTO)
    print('%-26s %-22s'%(grp[8:],text),' '.join('%s %.1f'%(a.replace('tensor','T').replace('ffma','F'),b) for a,b in res.items()),flush=True)
