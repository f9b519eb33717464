import frazil, os, shutil, subprocess, sys, time, threading, pathlib
F="/work/w/tgt-layout/debug/frazil"
root=pathlib.Path("/tmp/attack/s3"); shutil.rmtree(root, ignore_errors=True); root.mkdir()
store=root/"store"; url=f"file:{store}"
A="time:41@1ms node:1 sequence:12 epoch:2025-01-01"; B="time:41@1ms other:1 sequence:12 epoch:2025-01-01"
LEASE=f"window=20s renew=1s start=zero store={url} namespace=n"
W='''
import frazil,sys,time
spec,out,secs=sys.argv[1],open(sys.argv[2],"w",buffering=1),float(sys.argv[3])
end=time.monotonic()+secs; ids=None
while time.monotonic()<end:
    try:
        ids=ids or frazil.Snowflake(spec,timeout=20)
        for v in ids.batch(4): print(v,int(time.time()*1000),file=out)
    except frazil.FrazilError as e:
        print("#",int(time.time()*1000),str(e)[:200],file=out)
        time.sleep(.2)
    time.sleep(.001)
'''
def start(layout,name,secs): return subprocess.Popen([sys.executable,"-c",W,f'layout="{layout}" {LEASE}',str(root/name),str(secs)])
a=start(A,"a0",2); a.wait()
shutil.copytree(store,root/"backup")
print(subprocess.run([F,"nodes",url,"--namespace","n","--change-layout",B],capture_output=True,text=True).stdout.splitlines()[0])
time.sleep(24)
b=[start(B,f"b{i}",45) for i in range(2)]
time.sleep(12)
def restore():
    for f in (root/"backup").rglob("*"):
        if f.is_file():
            to=store/f.relative_to(root/"backup"); to.parent.mkdir(exist_ok=True,parents=True)
            with open(to,"r+b" if to.exists() else "wb") as o: o.write(f.read_bytes()); o.truncate()
    for f in store.rglob("*"):
        if f.is_file() and not (root/"backup"/f.relative_to(store)).exists(): print("only now:",f.relative_to(store)); 
restore(); t0=time.time()*1000
a=[start(A,f"a{i+1}",28) for i in range(2)]
for p in a+b: p.wait()
print(subprocess.run([F,"nodes",url,"--namespace","n"],capture_output=True,text=True).stdout)
seen={}; dup=[]
for n in ["b0","b1","a1","a2"]:
    for line in open(root/n):
        if line.startswith("#"): continue
        v,t=map(int,line.split())
        if v in seen: dup.append((max(t,seen[v][1])-t0,n,seen[v][0]))
        else: seen[v]=(n,t)
print(len(seen),"ids",len(dup),"repeated; ms after the restore:",(min(dup)[0],max(dup)[0]) if dup else None)
for n in ["b0","b1","a1","a2"]:
    print(n,[l.strip() for l in open(root/n) if l.startswith("#")][:2])
