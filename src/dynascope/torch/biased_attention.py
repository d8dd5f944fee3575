"""Multi-head attention with biases of queries and values that are not learned."""
# pyright: reportMissingImports=false

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from dynascope.networks import QueryValueBiases
from dynascope.validation import require

__all__ = ["BiasedAttention"]


class BiasedAttention(torch.nn.MultiheadAttention):
    """Multi-head attention with biases b_Q and b_V that are not learned: q = W_Q x + b_Q and v = W_V x + b_V.

    The module replaces `torch.nn.MultiheadAttention`: arguments, masks and results of `forward` are the same, and
    `load_state_dict` accepts the weights of either module. With zero biases, the outputs are equal.

    In training mode, every call of `forward` draws b_Q = m_Q + s_Q ⊙ ε and b_V = m_V + s_V ⊙ ε′ with the random numbers
    of PyTorch. All heads, tokens and samples of the batch share these biases. In evaluation mode, the biases are their
    means. The means and deviations are buffers that are not part of the `state_dict`.

    Attributes:
        query_mean: m_Q, shape (head_dim,).
        query_deviation: s_Q, shape (head_dim,).
        value_mean: m_V, shape (head_dim,).
        value_deviation: s_V, shape (head_dim,).

    Args:
        embed_dim: Width of the queries and outputs.
        num_heads: Number of heads, which must divide `embed_dim`.
        dropout: Dropout probability of the attention weights.
        bias: Whether the projections have learned biases.
        add_bias_kv: Whether to append a learned key and value to each sequence.
        add_zero_attn: Whether to append a key and a value of zeros to each sequence.
        kdim: Width of the keys; None for `embed_dim`.
        vdim: Width of the values; None for `embed_dim`.
        batch_first: Whether the first axis of inputs and outputs is the batch.
        device: Device of the weights.
        dtype: Type of the weights.
        biases: Means and deviations of b_Q and b_V; None for the defaults of `QueryValueBiases`.

    Raises:
        InputError: If the number of heads does not divide the width, or if the length of a bias array differs from the
            number of columns of a head.

    References:
        As for `networks.QueryValueBiases`.

    Example:
        >>> import torch
        >>> plain, biased = (kind(8, 2, batch_first=True) for kind in (torch.nn.MultiheadAttention, BiasedAttention))
        >>> biased.load_state_dict(plain.state_dict())
        <All keys matched successfully>
        >>> x = torch.ones(3, 5, 8)
        >>> biased(x, x, x)[0].shape
        torch.Size([3, 5, 8])
    """

    query_mean: Tensor
    query_deviation: Tensor
    value_mean: Tensor
    value_deviation: Tensor

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        device: Any = None,
        dtype: Any = None,
        *,
        biases: QueryValueBiases | None = None,
    ):
        require(
            isinstance(num_heads, int) and num_heads > 0 and embed_dim % num_heads == 0,
            f"num_heads is {num_heads}, which does not divide embed_dim {embed_dim}",
            argument="num_heads",
            value=num_heads,
            remedy="choose a number of heads that divides embed_dim",
        )
        require(
            biases is None or isinstance(biases, QueryValueBiases),
            f"biases has type {type(biases).__name__}",
            argument="biases",
            value=type(biases).__name__,
            remedy="give networks.QueryValueBiases(…), or None for the defaults",
        )
        super().__init__(
            embed_dim, num_heads, dropout, bias, add_bias_kv, add_zero_attn, kdim, vdim, batch_first, device, dtype
        )
        width = embed_dim // num_heads
        biases = QueryValueBiases() if biases is None else biases
        for kind, values in (("mean", biases.means(width)), ("deviation", biases.deviations(width))):
            for name, each in zip(("query", "value"), values, strict=True):
                buffer = torch.as_tensor(each).to(device=self.out_proj.weight.device, dtype=self.out_proj.weight.dtype)
                self.register_buffer(f"{name}_{kind}", buffer, persistent=False)
        # `TransformerEncoderLayer` bypasses `forward` in evaluation unless a module has a hook.
        self.register_forward_pre_hook(_unchanged)

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """Compute the outputs and, if required, the attention weights, as `torch.nn.MultiheadAttention` does."""
        batch_first = self.batch_first and query.dim() == 3
        if batch_first:
            query, key, value = (each.transpose(0, 1) for each in (query, key, value))
        together = self.in_proj_weight is not None
        outputs, weights = functional.multi_head_attention_forward(
            query,
            key,
            value,
            self.embed_dim,
            self.num_heads,
            self.in_proj_weight,
            self._projection_bias(),
            self.bias_k,
            self.bias_v,
            self.add_zero_attn,
            self.dropout,
            self.out_proj.weight,
            self.out_proj.bias,
            training=self.training,
            key_padding_mask=key_padding_mask,
            need_weights=need_weights,
            attn_mask=attn_mask,
            use_separate_proj_weight=not together,
            q_proj_weight=None if together else self.q_proj_weight,
            k_proj_weight=None if together else self.k_proj_weight,
            v_proj_weight=None if together else self.v_proj_weight,
            average_attn_weights=average_attn_weights,
            is_causal=is_causal,
        )
        return outputs.transpose(0, 1) if batch_first else outputs, weights

    def _projection_bias(self) -> Tensor:
        """Return the learned biases of queries, keys and values plus the biases that are not learned."""
        query, value = (
            mean + deviation * torch.randn_like(deviation) if self.training else mean
            for mean, deviation in (
                (self.query_mean, self.query_deviation),
                (self.value_mean, self.value_deviation),
            )
        )
        # The heads are blocks of columns, so every head receives the same bias.
        unlearned = torch.cat(
            [query.repeat(self.num_heads), query.new_zeros(self.embed_dim), value.repeat(self.num_heads)]
        )
        return unlearned if self.in_proj_bias is None else self.in_proj_bias + unlearned


def _unchanged(module: torch.nn.Module, inputs: Any) -> None:
    """Leave the inputs of a module unchanged."""
