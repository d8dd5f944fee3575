"""Translation of the graph of an exported program to JAX."""
# pyright: reportMissingImports=false

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import torch

from dynascope.errors import InputError
from dynascope.torch.symmetry.network import Network, copied
from dynascope.torch.symmetry.operations import OPERATIONS
from dynascope.validation import require

__all__ = ["Translation"]

_HERE = Path(__file__).parent


class Translation:
    """A JAX function (params, inputs) → outputs, translated from an exported program.

    Everything that depends neither on parameters nor on inputs is computed once, by PyTorch.

    Args:
        exported: The program, decomposed into the core operations of ATen.
        found: The network of the program.

    Raises:
        InputError: If an operation draws random numbers or is not supported.
    """

    def __init__(self, exported: Any, found: Network):
        graph, signature = exported.graph, exported.graph_signature
        named = {node.name: node for node in graph.nodes}
        given = [named[name] for name in signature.user_inputs if isinstance(name, str)]
        cuts = np.cumsum([len(found.parameters), len(found.buffers)])
        self._parameters, buffers, self._inputs = given[: cuts[0]], given[cuts[0] : cuts[1]], given[cuts[1] :]
        constants = dict(zip(buffers, map(copied, found.buffers), strict=True))
        stored = {**exported.state_dict, **exported.constants}
        for each in signature.input_specs:
            if each.target is not None:
                constants[named[each.arg.name]] = stored[each.target].detach()
        self._outputs = [named[name] for name in signature.user_outputs]
        self._operations: list[tuple[torch.fx.Node, Callable[..., Any]]] = []
        needed = _needed(self._outputs)
        for node in graph.nodes:
            if node.op != "call_function" or node not in needed:
                continue
            if all(each in constants for each in node.all_input_nodes):
                constants[node] = _computed(node, constants)
            else:
                self._operations.append((node, _operation(node)))
        read = {each for node, _ in self._operations for each in node.all_input_nodes} | set(self._outputs)
        self._constants = {node: _array(each) for node, each in constants.items() if node in read}

    def __call__(self, params: Any, inputs: Any) -> Any:
        """Return the outputs: one array, or a list of arrays."""
        values: dict[torch.fx.Node, Any] = dict(self._constants)
        values.update(zip(self._parameters, map(jnp.asarray, jax.tree.leaves(params)), strict=True))
        values.update(zip(self._inputs, map(jnp.asarray, jax.tree.leaves(inputs)), strict=True))
        for node, operation in self._operations:
            positional, named = torch.fx.map_arg((node.args, node.kwargs), values.__getitem__)
            values[node] = operation(*positional, **named)
        found = [values[node] for node in self._outputs]
        return found[0] if len(found) == 1 else found


def _needed(outputs: Sequence[torch.fx.Node]) -> set[torch.fx.Node]:
    """Return the nodes on which outputs depend, without assertions and writes into buffers."""
    found, left = set(outputs), list(outputs)
    while left:
        fresh = [each for each in left.pop().all_input_nodes if each not in found]
        found.update(fresh)
        left += fresh
    return found


def _name(node: torch.fx.Node) -> str:
    """Return the name of an operation, such as "add.Tensor"."""
    return str(node.target).removeprefix("aten.")


def _operation(node: torch.fx.Node) -> Callable[..., Any]:
    """Return the JAX function of an operation; raise `InputError` if it draws random numbers or is not supported."""
    _require_fixed(node)
    if node.target is operator.getitem:
        return operator.getitem
    name = _name(node)
    known = OPERATIONS.get(name, OPERATIONS.get(name.partition(".")[0]))
    if known is None:
        raise InputError(
            f"apply uses the operation {name}, which is not supported{_line(node)}",
            argument="apply",
            value=name,
            remedy="replace it with supported operations, or pass a JAX function to dynascope.symmetry.find_symmetries",
        )
    return known


def _require_fixed(node: torch.fx.Node) -> None:
    require(
        torch.Tag.nondeterministic_seeded not in getattr(node.target, "tags", ()),
        f"apply uses the operation {_name(node)}, which draws random numbers{_line(node)}",
        argument="apply",
        value=_name(node),
        remedy="call eval() on layers that draw random numbers, or set their probability to 0",
    )


def _line(node: torch.fx.Node) -> str:
    """Return the source line of an operation if known, preferably a line of user code and otherwise of PyTorch."""
    found = re.findall(r'File "(.*?)", line (\d+).*\n *(.*)', node.meta.get("stack_trace") or "")
    lines = [each for each in found if Path(each[0]).is_file() and Path(each[0]).parent != _HERE]
    own = [each for each in lines if Path(torch.__file__).parent not in Path(each[0]).parents]
    return ", in {}, line {}: {}".format(*(own or lines)[-1]) if lines else ""


def _computed(node: torch.fx.Node, constants: dict[torch.fx.Node, Any]) -> Any:
    """Evaluate an operation on constants."""
    _require_fixed(node)
    positional, named = torch.fx.map_arg((node.args, node.kwargs), constants.__getitem__)
    with torch.no_grad():
        return node.target(*positional, **named)  # pyright: ignore[reportCallIssue]


def _array(constant: Any) -> Any:
    """Return a constant as a NumPy array, or several constants as a list."""
    if isinstance(constant, torch.Tensor):
        return copied(constant).numpy()
    return [_array(each) for each in constant]
