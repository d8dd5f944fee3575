from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from dynascope.diagnosis.diagnosis import Diagnosis, summary_of
from dynascope.diagnosis.line import Line
from dynascope.results import make_record

LINES = st.builds(
    Line,
    topic=st.sampled_from(["regime", "stability"]),
    state=st.sampled_from(["lazy", "not measured"]),
    sentence=st.lists(st.sampled_from(["S is 0.5.", "The rate is 1e-3."]), min_size=1, max_size=3).map(" ".join),
    weight=st.integers(0, 3),
)


@given(st.lists(LINES, max_size=12))
def test_the_summary_has_at_most_seven_sentences_and_only_answers(lines):
    summary = " ".join(summary_of(lines))
    assert len(re.findall(r"(S is 0\.5\.|The rate is 1e-3\.)", summary)) <= 7
    answers = {each.sentence for each in lines if each.is_answer and each.weight > 0}
    assert set(summary_of(lines)) <= answers


def test_plain_values_have_no_numbers_that_json_lacks():
    record = make_record({"mean_loss": (["step"], [1.0])}, {"step": [0]})
    found = Diagnosis(observed=record, title="Diagnosis", lines=(Line("a", "fine", "All is fine."),))
    assert found.to_json()["lines"][0]["number"] is None
    assert found.state("a") == "fine"
    assert found.state("b") == ""
