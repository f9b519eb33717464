"""`frazil.prometheus`: Prometheus scrapes the values that were counted."""

import frazil
import frazil.prometheus
import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families


def scraped(registry):
    return {family.name: family for family in text_string_to_metric_families(generate_latest(registry).decode())}


def test_scraped_values_are_the_counted_ones():
    registry = CollectorRegistry()
    frazil.prometheus.register(registry)
    ids = frazil.Snowflake("standard", store="memory", namespace="scraped")
    orders = frazil.Segment("scraped", store="memory", step=100)
    ids.batch(1_000), orders.batch(30)
    families = scraped(registry)
    for metric in frazil.METRICS:
        name = metric.prometheus.removesuffix("_total")
        assert (families[name].type, families[name].documentation) == ("counter" if metric.is_counter else "gauge", metric.help)
    value = lambda name, **labels: registry.get_sample_value(name, labels)
    assert value("frazil_issued_total", kind="snowflake", spec=ids.spec) == 1_000
    assert value("frazil_issued_total", kind="segment", spec=orders.spec) == 30
    assert value("frazil_range_left", kind="segment", spec=orders.spec) == 70
    assert value("frazil_range_left", kind="snowflake", spec=ids.spec) is None
    ids.next()
    assert value("frazil_issued_total", kind="snowflake", spec=ids.spec) == 1_001


def test_a_registry_has_one_collector():
    registry = CollectorRegistry()
    frazil.prometheus.register(registry)
    with pytest.raises(ValueError, match="Duplicated"):
        frazil.prometheus.register(registry)
