#!/usr/bin/env bash
# Redis' scripts: cjson cuts a number to 14 digits, IDs of 53 bits too, and the fake of the tests does not.
#
# A script of Redis 7.0 that writes JSON from a number, cjson.encode({id = tonumber(...)}), gives 9.007199254741e+15 for
# 9007199254740991, the largest integer that JavaScript keeps. fakeredis 2.41.0, on which tests of such scripts run, gives all 16 digits.
# Remedy: scripts pass IDs on as texts; and a test of a script runs on a real server.
. "$(dirname "$0")/begin.sh"
command -v redis-server > /dev/null || { echo "redis-server 7.0 is needed" && exit 1; }
python_packages "fakeredis[lua]==2.41.0" redis==8.1.0
cat > try.py <<'PY'
import subprocess

import fakeredis
import redis

server = subprocess.Popen(["redis-server", "--port", "0", "--unixsocket", "socket", "--save", ""], stdout=subprocess.DEVNULL)
real = redis.Redis(unix_socket_path="socket", retry=redis.retry.Retry(redis.backoff.ConstantBackoff(0.1), 100))
try:
    for name, client in {"Redis 7.0": real, "fakeredis": fakeredis.FakeRedis()}.items():
        for id in ("9007199254740991", "1541815603606036481"):
            print(f"{name}:", client.eval("return cjson.encode({id = tonumber(ARGV[1]), text = ARGV[1]})", 0, id).decode())
finally:
    server.kill()
PY
"$python" try.py > seen
expect seen <<'SEEN'
Redis 7.0: {"id":9.007199254741e+15,"text":"9007199254740991"}
Redis 7.0: {"id":1.541815603606e+18,"text":"1541815603606036481"}
fakeredis: {"id":9007199254740991,"text":"9007199254740991"}
fakeredis: {"id":1541815603606036480,"text":"1541815603606036481"}
SEEN
