from benchmarks.papers.cure_ucb import two_arm


def test_late_bloomer_is_better_from_16000_rounds_on():
    claim = two_arm.switch()
    assert claim.holds
    assert claim.ours == "from 16,000 on"
