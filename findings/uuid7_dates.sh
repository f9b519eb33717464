#!/usr/bin/env bash
# UUID 7: the package of this name on PyPI makes UUIDs of version 7 whose dates, read by the standard, are in another century.
#
# uuid7 0.1.0 follows a draft, in which the first 36 bits are seconds. RFC 9562 has 48 bits of milliseconds. uuid6 2025.0.1
# follows the RFC, and both set the version 7. A UUID of 1 December 2026 by uuid7 has the RFC's time of a day in 2203. A table with rows of
# both kinds is not in order of time, and a query by time misses one kind.
# Remedy: uuid6, or uuid.uuid7() of Python 3.14. The rows of uuid7 sort after all new ones until 2203.
. "$(dirname "$0")/begin.sh"
python_packages uuid7==0.1.0 uuid6==2025.0.1
cat > try.py <<'PY'
from datetime import UTC, datetime
from unittest import mock

import uuid6
from uuid_extensions import uuid7

second = 1_796_083_200
with mock.patch("time.time_ns", lambda: second * 10**9):
    made = {"uuid7": uuid7(ns=second * 10**9), "uuid6": uuid6.uuid7()}
for name, uuid in made.items():
    print(f"{name}: version {uuid.version}, {datetime.fromtimestamp((uuid.int >> 80) / 1000, UTC):%Y-%m-%d}")
print("in order:", ", ".join(sorted(made, key=lambda name: made[name].int >> 80)))
PY
"$python" try.py > seen
expect seen <<'SEEN'
uuid7: version 7, 2203-02-16
uuid6: version 7, 2026-12-01
in order: uuid6, uuid7
SEEN
