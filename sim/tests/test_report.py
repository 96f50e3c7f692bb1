from xoe_sim.report import percentile


def test_percentiles_are_values_that_were_measured():
    values = list(range(1, 101))
    assert percentile(values, 0.5) == 50
    assert percentile(values, 0.99) == 99
    assert percentile([7], 0.99) == 7
    assert percentile([3, 1, 2], 0.5) == 2
    assert percentile([], 0.5) == 0
