from __future__ import annotations

from dynascope.studies.scaling.emergence_time.study import EmergenceTime


def test_a_result_in_the_published_setting_has_its_fields():
    fields = EmergenceTime(paper=True, seed=3).parameters()
    assert (fields["paper"], fields["width"], fields["bits"], fields["seed"]) == (True, 1000, 32, 3)
