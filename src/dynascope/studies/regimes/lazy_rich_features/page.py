"""Figures and text of the page of lazy-rich-features."""

from __future__ import annotations

__all__ = ["MEANING"]

MEANING = (
    "Networks with {parameters.hidden_layers} hidden layers learn {parameters.samples} labelled images, with "
    "labels that are divided by ever larger factors and outputs that are multiplied by them; the more, the less "
    "the weights have to move. From the smallest factor to the limit, a network that is linear in its weights, "
    "the distance κ to minimum features (as few as the outputs need) goes from "
    "{observed.kappa_cka[run=first]:mean} to {observed.kappa_cka[run=linearised]:mean} and the test error from "
    "{observed.final_test_error[run=first]:mean} to {observed.final_test_error[run=linearised]:mean}; training "
    "the last layer alone ends at {observed.kappa_cka[run=last layer only]:mean} and "
    "{observed.final_test_error[run=last layer only]:mean}. How networks come near the limit is compared with an "
    "expansion that is known before training; its correction and that of training differ by at most "
    "{agreement.correction_maximum:percent}. What happens to features on the way has no theory here and is "
    "measured on few images, in {parameters.seeds} networks of each kind; the verdict is on the expansion."
)
