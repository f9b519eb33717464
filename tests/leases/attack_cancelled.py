import subprocess, sys, time, pathlib, shutil
F="/work/w/tgt-layout/debug/frazil"
root=pathlib.Path("/tmp/attack/s4"); shutil.rmtree(root, ignore_errors=True); root.mkdir()
url="redis://127.0.0.1:17799"
def redis():
    p=subprocess.Popen(["redis-server","--port","17799","--appendonly","yes","--appendfsync","always","--dir",str(root)],stdout=subprocess.DEVNULL); time.sleep(.7); return p
A="time:41@1ms node:10 sequence:12 epoch:2025-01-01"; B="time:40@1ms node:9 sequence:14 epoch:2025-01-01"
LEASE=f"window=20s renew=5s store={url} namespace=n"
W='''
import frazil,sys,time
spec,out,secs=sys.argv[1],open(sys.argv[2],"w",buffering=1),float(sys.argv[3])
end=time.monotonic()+secs; ids=None
while time.monotonic()<end:
    try:
        ids=ids or frazil.Snowflake(spec,timeout=20)
        print(int(time.time()*1000),ids.next(),file=out)
    except frazil.FrazilError as e: print(int(time.time()*1000),"#",str(e)[:260],file=out)
    time.sleep(.1)
'''
def nodes(*o):
    r=subprocess.run([F,"nodes",url,"--namespace","n",*o],capture_output=True,text=True); return (r.stdout+r.stderr)
r=redis()
try:
    print(nodes("--begin",f'layout="{A}" {LEASE}').splitlines()[0])
    ps=[]
    for i in range(2):
        ps.append(subprocess.Popen([sys.executable,"-c",W,f'layout="{A}" {LEASE}',str(root/f"a{i}"),"75"])); time.sleep(1.5)
    at=int(time.time()*1000)+45000
    print(nodes("--change-layout",B,"--at",str(at)).splitlines()[0]); time.sleep(8)
    print(nodes("--change-layout",B,"--cancel").splitlines()[0])
    r.terminate(); r.wait(); r=redis()
    time.sleep(8); print([l for l in nodes().splitlines() if l.startswith("chang")])
    time.sleep(max(0,at/1000-time.time()+4))
    print("after M:",[l for l in nodes().splitlines() if l.startswith("chang")])
    print("cancel:",nodes("--change-layout",B,"--cancel").splitlines()[0]); print("back:",nodes("--change-layout",A).splitlines()[0])
    for p in ps: p.terminate()
    for i in range(2): print(open(root/f"a{i}").read().splitlines()[-1])
finally: r.terminate()
