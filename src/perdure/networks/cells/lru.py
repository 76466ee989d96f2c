"""The linear recurrent unit (Orvieto et al. 2023).

From "Resurrecting recurrent neural networks for long sequences". Each unit has a complex state
c_t = lambda c_{t-1} + sqrt(1 - |lambda|^2) (B x_t + b), with complex B and b, and
lambda = exp(-e^nu + i theta): |lambda| < 1 whatever nu is. The state h_t is (Re c_t, Im c_t), and
y_t = tanh(W_ho h_t + b_ho), which is the tanh of Re(C c_t) + b_ho for a complex C. Orvieto et al. train the
factor sqrt(1 - |lambda|^2) and the logarithm of theta, and add D x_t to y_t; here the factor follows lambda,
theta is trained itself, and the tanh takes the place of their MLP.
"""

from __future__ import annotations

import math
from typing import Annotated, ClassVar

import torch
from pydantic import Field, PositiveFloat
from torch import Tensor

from perdure.networks.arithmetic import exp
from perdure.networks.cells.cell import Cell, LayerInput
from perdure.networks.cells.diagonal import NativeDiagonal, Numbers, linear_recurrence
from perdure.networks.cells.projecting import FORGETTING, matrix, on_rows, projected, rate, read_out, readout
from perdure.networks.cells.recurrence import backwards
from perdure.networks.layout import Axis, InitialisationRule, Start, Weight, Weights
from perdure.networks.native.library import ADDRESS, SIZE, WAY
from perdure.networks.native.sweeps import CompiledSweeps, Saved, ran, require
from perdure.networks.packing import Packing, Sweep
from perdure.networks.tape import Tape

MAPS = (("weight_ih", "bias_ih"), ("imaginary_weight_ih", "imaginary_bias_ih"))


class NativeLRU(NativeDiagonal):
    """c_t = lambda_t c_{t-1} + given_t with complex numbers, real parts of all units first."""

    prefix = "lru"
    numbers = 2
    signatures = (NativeDiagonal.signatures[0], (*WAY, ADDRESS, ADDRESS, SIZE, *[ADDRESS] * 3))

    def backward(self, grad: Tensor, saved: Saved, weight: Tensor, sweep: Sweep) -> tuple[Tensor, Tensor]:
        """Delta, and the gradient of lambda; see `PythonSweeps`."""
        way, width = sweep.way, weight.shape[-1]
        to_c, states = (require(each, weight, way.rows, width) for each in (grad, saved[0]))
        factor = self._factor(weight, way.rows)
        delta, gradient = torch.empty_like(to_c), torch.empty_like(factor)
        addresses = (each.data_ptr() for each in (states, delta, gradient))
        stride = width * (weight.ndim - 1)
        ran(
            self.backwards(*way.addresses, width // 2, to_c.data_ptr(), factor.data_ptr(), stride, *addresses)
        )
        return delta, gradient


class LRU(Cell):
    """Complex c_t = l c_{t-1} + sqrt(1 - |l|^2) (B x_t + b), l = exp(-e^nu + i theta); tanh readout."""

    gates: ClassVar[int] = 2
    passes_states: ClassVar[bool] = False
    continues: ClassVar[bool] = True
    numbers_per_unit: ClassVar[int] = 2
    native: ClassVar[type[CompiledSweeps] | None] = NativeLRU

    memory: Annotated[float, Field(gt=0, lt=1)] = 0.9
    """|lambda| of a unit whose parameter is 0; parameters start between -2 and 2."""
    angle: PositiveFloat = math.pi
    """Initial angles of lambda are between plus and minus this."""

    def weights(self, prefix: str, inputs: Axis, units: Axis, rule: InitialisationRule) -> dict[str, Weight]:
        """Real and imaginary part of B [H, F] and b, nu and theta [H], W_ho [H, 2 H], b_ho."""
        found: dict[str, Weight] = {}
        for names in MAPS:
            found |= matrix(prefix, names, units, inputs, rule)
        found[prefix + "modulus_hh"] = (units,), FORGETTING
        found[prefix + "angle_hh"] = (units,), Start(self.angle, spread=self.angle / math.sqrt(3))
        return found | readout(prefix, units, units.stacked(2), rule)

    def sweep(self, weights: Weights, prefix: str, given: LayerInput, direction: int) -> Tensor:
        """The projection of all rows at once, then one complex multiplication and addition per step."""
        modulus, angle = (on_rows(weights, prefix + name, given) for name in ("modulus_hh", "angle_hh"))
        scale = self.scale(modulus)
        entering = projected(weights, prefix, MAPS, given, direction, torch.cat([scale, scale], dim=-1))
        if given.tape is not None:
            given.tape.projections[prefix] = entering.detach()
        factor = self.factor(modulus, angle)
        return linear_recurrence(COMPLEX, given.packing, entering, factor, reverse=direction == 1)

    def forgetting(self, parameter: Tensor) -> Tensor:
        """e^nu = -log |lambda|."""
        return rate(parameter, -math.log(self.memory))

    def factor(self, parameter: Tensor, angle: Tensor) -> Tensor:
        """Real and imaginary part of lambda [..., 2 H]."""
        size, turned = exp(-self.forgetting(parameter)), angle.double()  # rounded alike on all processors
        return torch.cat([size * turned.cos().to(size.dtype), size * turned.sin().to(size.dtype)], dim=-1)

    def scale(self, parameter: Tensor) -> Tensor:
        """sqrt(1 - |lambda|^2), also where that is near 1."""
        return torch.expm1(-2 * self.forgetting(parameter).double()).neg().sqrt().to(parameter.dtype)

    def output(
        self, weights: Weights, prefix: str, states: Tensor, packing: Packing, tape: Tape | None
    ) -> Tensor:
        """y_t = tanh(W_ho h_t + b_ho)."""
        return read_out(weights, prefix, states, packing, tape)

    def _factor(self, weights: Weights, prefix: str) -> Tensor:
        return self.factor(weights[prefix + "modulus_hh"], weights[prefix + "angle_hh"])

    def carried(self, weights: Weights, prefix: str, states: Tensor) -> Tensor:
        """Lambda c."""
        return as_real(as_complex(self._factor(weights, prefix)) * as_complex(states))

    def continued(self, weights: Weights, prefix: str, projected: Tensor, packing: Packing) -> Tensor:
        """The recurrence alone."""
        return linear_recurrence(COMPLEX, packing, projected, self._factor(weights, prefix))


def as_complex(pairs: Tensor) -> Tensor:
    """Complex numbers [..., H] from their real and imaginary parts [..., 2 H]."""
    real, imaginary = pairs.chunk(2, dim=-1)
    return torch.complex(real.contiguous(), imaginary.contiguous())


def as_real(numbers: Tensor) -> Tensor:
    """The inverse of `as_complex`."""
    return torch.cat([numbers.real, numbers.imag], dim=-1)


class PythonSweeps:
    """The two sweeps; `weight` is lambda [2 H], or one row per step [S, 2 H], real parts first."""

    @staticmethod
    def forward(projection: Tensor, bias: Tensor | None, weight: Tensor, sweep: Sweep) -> Saved:
        """c_t = lambda_t c_{t-1} + u_t."""
        del bias
        states = as_complex(projection)
        c, factors = states.split(sweep.sizes), as_complex(weight).expand_as(states).split(sweep.sizes)
        for step, previous, carried in sweep.moves:
            if carried:
                c[step][:carried].addcmul_(factors[step][:carried], c[previous][:carried])
        return (as_real(states),)

    @staticmethod
    def backward(grad: Tensor, saved: Saved, weight: Tensor, sweep: Sweep) -> tuple[Tensor, Tensor]:
        """delta_t = dL/dc_t + conj(lambda_{t+1}) delta_{t+1}; of lambda_t, delta_t conj(c_{t-1})."""
        deltas, turned = as_complex(grad), as_complex(weight).conj().resolve_conj()
        delta, factors = deltas.split(sweep.sizes), turned.expand_as(deltas).split(sweep.sizes)
        for step, _, _, following, taken in backwards(sweep):
            if taken:
                delta[step][:taken].addcmul_(factors[following][:taken], delta[following][:taken])
        states, found = as_complex(saved[0]).split(sweep.sizes), torch.zeros_like(deltas)
        parts = found.split(sweep.sizes)
        for step, previous, carried in sweep.moves:
            parts[step][:carried] = delta[step][:carried] * states[previous][:carried].conj()
        return as_real(deltas), as_real(found if weight.ndim == 2 else found.sum(0))


COMPLEX = Numbers(LRU, PythonSweeps, None)
"""Each unit has a complex number: real parts of all units first, then imaginary parts."""
