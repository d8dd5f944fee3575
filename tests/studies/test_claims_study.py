"""A study of claims reports on each, and is decided by those that it judges."""

from typing import ClassVar

import pytest

from dynascope.comparison import Claim
from dynascope.studies import ClaimsStudy, Reference, parameter
from dynascope.validation.bounded import PositiveFloat


class Widths(ClaimsStudy):
    """How wide a network must be."""

    most: PositiveFloat = parameter(8.0, "Neurons that are claimed to be enough.")

    name: ClassVar[str] = "widths"
    reference: ClassVar[Reference] = Reference("A. Author, A title", "2401.00001", "Few neurons are enough.")
    minutes: ClassVar[float] = 0.1
    theory: ClassVar[str] = "a bound"
    axes: ClassVar = ("sample",)
    along: ClassVar = "sample"
    tolerance: ClassVar = {"share": (1e-9, "shares add up"), "share_maximum": (1e-9, "shares add up")}
    checks: ClassVar = ("share", "share_maximum")
    deciding_claims: ClassVar = ("enough",)

    def trained(self):
        return {"loss": [0.1, 0.2], "share": [1.0, 1.0]}

    def exact(self):
        return {"share": [1.0, 1.0]}

    def claimed(self, found):
        return [
            Claim("enough", "Few neurons are enough.", 6, 5, 7, most=self.most),
            Claim("more", "More would do harm.", 0.5, -1, 2, least=0),
        ]

    def about(self):
        return {"task": "none", "network": "any"}


@pytest.mark.parametrize(("most", "verdict"), [(8.0, "agree"), (6.5, "undecided"), (4.0, "disagree")])
def test_its_verdict_is_that_of_its_judged_claims(most, verdict):
    tree = Widths(most=most).run()
    assert tree.verdict.outcome == verdict
    assert {name: each.decides for name, each in tree.claims.items()} == {"enough": True, "more": False}
    assert list(tree.checks) == ["share", "share_maximum"]
    assert tree.claims["more"].outcome == tree.observed["holds"].to_series()["more"] == "undecided"
