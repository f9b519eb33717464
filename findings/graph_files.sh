#!/usr/bin/env bash
# Graph files: igraph writes an ID with 15 digits, and reads the exact one of another program as a double.
#
# igraph 1.0.0 keeps a vertex's name in memory as Python's int. Its GraphML, GML, Pajek and DOT files have 1.54181560360604e+18 for
# 1541815603606036481: the last four digits are gone, and two vertices have one name. networkx 3.6.1 writes
# all digits into GraphML, as type "long", which igraph reads as a double. No warning is given.
# Remedy: give igraph names and attributes as str.
. "$(dirname "$0")/begin.sh"
python_packages igraph==1.0.0 networkx==3.6.1
cat > try.py <<'PY'
import warnings

import igraph
import networkx

warnings.simplefilter("error")
first, second = 1541815603606036481, 1541815603606036999
graph = igraph.Graph.TupleList([(first, second)])
print("igraph, in memory:", graph.vs["name"] == [first, second])
for format in ("graphml", "gml", "pajek"):
    graph.write(f"friends.{format}", format=format)
    print(f"igraph, {format}:", [str(name) for name in igraph.Graph.Read(f"friends.{format}", format=format).vs["name"]])
print("igraph's GraphML in networkx:", [node["name"] for _, node in networkx.read_graphml("friends.graphml").nodes(data=True)])

graph = networkx.Graph()
graph.add_edge("a", "b", order=first)
networkx.write_graphml(graph, "orders.graphml")
print("networkx's GraphML in networkx:", [edge["order"] for *_, edge in networkx.read_graphml("orders.graphml").edges(data=True)])
print("networkx's GraphML in igraph:", [int(order) for order in igraph.Graph.Read("orders.graphml", format="graphml").es["order"]])

graph = igraph.Graph.TupleList([(str(first), str(second))])
graph.write("friends.graphml", format="graphml")
print("texts:", igraph.Graph.Read("friends.graphml", format="graphml").vs["name"] == [str(first), str(second)])
PY
"$python" try.py > seen
expect seen <<'SEEN'
igraph, in memory: True
igraph, graphml: ['1.54181560360604e+18', '1.54181560360604e+18']
igraph, gml: ['1.54181560360604e+18', '1.54181560360604e+18']
igraph, pajek: ['1.54181560360604e+18', '1.54181560360604e+18']
igraph's GraphML in networkx: [1.54181560360604e+18, 1.54181560360604e+18]
networkx's GraphML in networkx: [1541815603606036481]
networkx's GraphML in igraph: [1541815603606036480]
texts: True
SEEN
