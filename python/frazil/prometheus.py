"""A Prometheus collector of the counts of generators and segments.

>>> import frazil.prometheus
>>> frazil.prometheus.register()
"""

from __future__ import annotations

from collections.abc import Iterator

import frazil

try:
    from prometheus_client import REGISTRY, CollectorRegistry
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
    from prometheus_client.metrics_core import Metric
    from prometheus_client.registry import Collector
except ModuleNotFoundError as error:
    if error.name != "prometheus_client":
        raise
    raise ImportError("frazil.prometheus needs prometheus-client: pip install 'frazil[prometheus]'", name=error.name) from error

__all__ = ["FrazilCollector", "register"]


class FrazilCollector(Collector):
    """Collects `frazil.stats()` when it is scraped, with the labels `kind` and `spec`."""

    def collect(self) -> Iterator[Metric]:
        """Returns the metrics of every open generator and segment."""
        return _families(frazil.stats())

    def describe(self) -> Iterator[Metric]:
        """Returns only the names."""
        return _families([])


def _families(all_stats: list[frazil.Stats]) -> Iterator[Metric]:
    values = [([stats.kind, stats.spec], stats.as_dict()) for stats in all_stats]
    for metric in frazil.METRICS:
        family = (CounterMetricFamily if metric.is_counter else GaugeMetricFamily)(metric.prometheus, metric.help, labels=["kind", "spec"])
        for labels, value in values:
            if metric.field in value:
                family.add_metric(labels, value[metric.field])
        yield family


def register(registry: CollectorRegistry = REGISTRY) -> FrazilCollector:
    """Registers a collector. Call it once for each registry.

    Raises:
        ValueError: the registry has one already.
    """
    collector = FrazilCollector()
    registry.register(collector)
    return collector
