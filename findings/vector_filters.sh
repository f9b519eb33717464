#!/usr/bin/env bash
# Qdrant: the client turns the bounds of a range into floats, so "IDs after this one" returns this one and earlier ones again.
#
# qdrant-client 1.20.0 keeps an ID in a payload, and as a point's ID, with every digit. Its model `Range` has float bounds. In the client's
# own engine (":memory:"), `gt` of the second of four IDs of a burst returns all four, and `lt` of the last returns none. `match` and the
# `offset` of `scroll` are exact. A program that pages by "greater than the last ID" gets rows of a burst twice.
# Remedy: page by the point's ID and `offset`, or filter by a time.
. "$(dirname "$0")/begin.sh"
python_packages qdrant-client==1.20.0
cat > try.py <<'PY'
from qdrant_client import QdrantClient, models

first = 1541815603606036481
ids = [first + at for at in range(4)]
client = QdrantClient(":memory:")
client.create_collection("orders", vectors_config=models.VectorParams(size=2, distance=models.Distance.DOT))
client.upsert("orders", [models.PointStruct(id=id, vector=[1, 1], payload={"id": id}) for id in ids])


def found(**condition: object) -> list[int]:
    must = models.Filter(must=[models.FieldCondition(key="id", **condition)])
    return [point.id - first for point in client.scroll("orders", scroll_filter=must)[0]]


print("the bound of gt", ids[1], "is", models.Range(gt=ids[1]).gt)
print("gt the second:", found(range=models.Range(gt=ids[1])))
print("lt the last:", found(range=models.Range(lt=ids[3])))
print("match the second:", found(match=models.MatchValue(value=ids[1])))
print("offset of the second:", [point.id - first for point in client.scroll("orders", offset=ids[1])[0]])
PY
"$python" try.py > seen
expect seen <<'SEEN'
the bound of gt 1541815603606036482 is 1.5418156036060365e+18
gt the second: [0, 1, 2, 3]
lt the last: []
match the second: [1]
offset of the second: [1, 2, 3]
SEEN
