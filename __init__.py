"""gradtape: automatic differentiation from plugins, with models that are saved with their gradients."""

from __future__ import annotations

from .core.convert import constant
from .core.custom import custom_gradient, register_gradient
from .core.function import function
from .core.module import Module
from .core.spec import TensorSpec
from .core.tape import GradientTape, UnconnectedGradients
from .core.tensor import Tensor
from .core.variable import Variable
from .plugins.ops.elementwise import *
