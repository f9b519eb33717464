#!/usr/bin/env bash
# Traces of Node: an ID that is a bigint is missing from the span, and the span says that no attribute was dropped.
#
# OpenTelemetry's SDK for Node (sdk-trace-base 2.12.1) takes texts, numbers and booleans. It drops a bigint, and counts 0 dropped
# attributes. A number arrives in the exported JSON (otlp-transformer 0.223.1) as an intValue with rounded digits. The SDK for Python
# (opentelemetry-sdk) exports the same int exactly, so the two halves of one trace name different orders.
# Remedy: the attribute is a text in every language.
. "$(dirname "$0")/begin.sh"
npm_packages @opentelemetry/api@1.9.1 @opentelemetry/sdk-trace-base@2.12.1 @opentelemetry/otlp-transformer@0.223.1
python_packages opentelemetry-sdk==1.44.0 opentelemetry-exporter-otlp-proto-common==1.44.0
cat > try.mjs <<'JS'
import { JsonTraceSerializer } from '@opentelemetry/otlp-transformer'
import { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-base'

const exporter = new InMemorySpanExporter()
const tracer = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] }).getTracer('shop')
const id = 1541815603606036481n
tracer.startSpan('pay', { attributes: { bigint: id, number: Number(id), text: String(id) } }).end()
const spans = exporter.getFinishedSpans()
console.log('Node: dropped', spans[0].droppedAttributesCount)
const sent = Buffer.from(JsonTraceSerializer.serializeRequest(spans)).toString()
for (const [text] of sent.matchAll(/"key":"(bigint|number|text)","value":\{[^}]*\}/g)) console.log(text)
JS
cat > try.py <<'PY'
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

exporter = InMemorySpanExporter()
provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(exporter))
provider.get_tracer("shop").start_span("pay", attributes={"int": 1541815603606036481}).end()
attribute = encode_spans(exporter.get_finished_spans()).resource_spans[0].scope_spans[0].spans[0].attributes[0]
print("Python:", attribute.key, attribute.value.int_value)
PY
{
    node try.mjs
    "$python" try.py
} > seen
expect seen <<'SEEN'
Node: dropped 0
"key":"number","value":{"intValue":1541815603606036500}
"key":"text","value":{"stringValue":"1541815603606036481"}
Python: int 1541815603606036481
SEEN
