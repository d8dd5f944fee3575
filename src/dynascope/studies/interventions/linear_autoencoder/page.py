"""Figures and text of the study `linear-autoencoder`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dynascope.results import Chart, Comparison
from dynascope.results.numbers import rounded

if TYPE_CHECKING:
    from dynascope.studies.interventions.linear_autoencoder.study import LinearAutoencoder

__all__ = ["figures", "meaning"]

_PENALTIES = {"none": "no penalty", "product": "a penalty on the product", "weights": "weight decay"}
_CRITICAL_SETS = {
    "none": "Every point of the hyperbola a b = 1 (dashed) is a minimum.",
    "product": "The hyperbola of minima (dashed) is closer to the origin, at a b = 1/(1 + λ).",
    "weights": "Only two minima remain, at a = b = ±√(1 − λ). The dashed line a = b joins the minima through the "
    "saddle at the origin. All trajectories end on this line: the decoder becomes the transpose of the encoder.",
}


def figures(study: LinearAutoencoder, result: Comparison) -> list[Chart]:
    """The figures: ladder of saddles, Hessian spectra, critical sets, recovered directions, and imbalance."""
    return [
        Chart(
            ("loss", "ladder_loss"),
            members={"penalty": ("weights",)},
            title="Ladder of saddles",
            caption=f"Loss from initial weights of scale {rounded(study.scale)} with weight decay. The steps show the "
            f"predicted losses at the {study.latents} saddles and at the global minimum. The closed form of the loss "
            "(dashed) coincides with training.",
            words=("loss", "saddles"),
        ),
        Chart(
            "saddle_loss",
            over="level",
            title="Losses at the saddles",
            caption="Loss between successive jumps, at the points of the trajectory with the smallest gradient, for "
            "each penalty. The predictions are the critical values for the strongest directions.",
            points=True,
        ),
        Chart(
            "saddle_hessian",
            over="eigenvalue",
            title="Hessian at the saddles",
            caption="Eigenvalues of the Hessian at the same points, with weight decay. Each series is labelled with "
            "the number of learned directions. The number of negative eigenvalues falls to zero at the global minimum.",
            points=True,
            symbols={"level": "learned"},
        ),
        *(
            Chart(
                "decoder_weight",
                over="encoder_weight",
                members={"penalty": (name,)},
                title=f"Critical set with {words}",
                caption="Trajectories of an autoencoder with one input of unit variance, one latent and λ = 0.3, in "
                f"the plane of encoder a and decoder b. {_CRITICAL_SETS[name]}",
                arrows=True,
            )
            for name, words in _PENALTIES.items()
        ),
        Chart(
            "direction_overlap",
            over="seed",
            title="Recovered directions",
            caption="Smallest |cos| between a singular vector of the decoder and the corresponding principal "
            "direction, after training from several standard initialisations.",
            points=True,
        ),
        Chart(
            "imbalance",
            over="convergence_time",
            log="y",
            decades=10,
            places={"seed": (0,), "convergence_time": tuple(range(study.times - 1))},
            title="Imbalance of the layers",
            caption="Imbalance ‖AᵀA − BBᵀ‖ after a standard initialisation. The imbalance decays as exp(−4λt) with "
            "weight decay and is conserved otherwise.",
        ),
    ]


def meaning(study: LinearAutoencoder, result: Comparison) -> str:
    """Summarise the ladder of saddles, the recovered directions, and their dependence on the penalty."""
    seen, errors = result.observed, {**result.quantities, **result.checks}
    none, product, weights = (rounded(each) for each in seen["direction_overlap"].mean("seed").to_numpy())
    small = [rounded(each) for each in seen["small_direction_overlap"].to_numpy()]
    return (
        f"Linear autoencoders with {study.latents} latents were trained on data with {len(study.singular_values)} "
        "principal directions. From small weights, the autoencoders learn the directions one at a time, strongest "
        "first. Between two jumps, training passes a saddle. The losses at the saddles differ from the predicted "
        f"critical values by at most {rounded(errors['saddle_loss_maximum'].error)} of the initial loss. The "
        "eigenvalues of the Hessian differ from their closed forms by at most "
        f"{rounded(errors['saddle_hessian_maximum'].error)} of the largest eigenvalue. From {study.starts} standard "
        "initialisations, the final losses differ from the global minima by at most "
        f"{rounded(errors['final_loss_maximum'].error)} of the largest minimum. With weight decay, the theory predicts "
        "that the singular vectors of the decoder are the principal directions. In training, the smallest |cos| "
        f"between a singular vector and the corresponding principal direction is on average {weights} with weight "
        f"decay, {none} without a penalty, and {product} with the penalty on the product. The losses without weight "
        "decay determine only the product of the layers, and training conserves the imbalance of the initial weights. "
        f"From small, nearly balanced weights, the smallest |cos| is {small[0]} without a penalty, {small[1]} with the "
        f"penalty on the product, and {small[2]} with weight decay."
    )
