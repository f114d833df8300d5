"""cases.py before.json limit out.json: measures again the cases below the limit."""
import sys, json, time, contextlib, math
from collections import defaultdict
import numpy as np
import pyvecgpu as vg
from pyvecgpu.bench.libraries import open_libraries
from pyvecgpu.bench.sweep.timed import Sweep
from pyvecgpu.bench.sweep.arrays import size_of
before=json.load(open(sys.argv[1])); limit=float(sys.argv[2])
dev=vg.Device('cuda')
libs=open_libraries(dev,['torch'],quick=True,against=None)
sw=Sweep(libs,size_of(dev,False),before['seed'])
rows=[c for c in before['cases'] if c[1]<limit]
out=[]; t0=time.time()
with contextlib.ExitStack() as st:
    st.enter_context(np.errstate(all='ignore'))
    for l in libs:
        if l.writes_as=='pyvecgpu': st.enter_context(l.module.device(l.device))
    for i,(num,old) in enumerate(rows):
        try: o=sw.measure(num, i%4==0)
        except Exception as e: print('ERR',num,repr(e)[:200]); continue
        if o.problem: print('PROBLEM',num,o.group,o.text,o.problem[:300],flush=True)
        out.append((num,o.group,o.text,old,o.ratio,o.seconds,o.beside,o.kernels))
        if time.time()-t0>float(sys.argv[4]): print('time up at',i,len(rows)); break
json.dump(out,open(sys.argv[3],'w'))
g=defaultdict(list)
for o in out: g[o[1]].append(o)
print(len(out),'again in',time.time()-t0,'below .9:',sum(o[4]<.9 for o in out),'below .5',sum(o[4]<.5 for o in out))
