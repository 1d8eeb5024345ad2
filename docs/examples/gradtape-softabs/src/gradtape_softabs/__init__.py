"""An op that does all that gradtape's own ops do: it differentiates, batches, fuses and exports.

The kernel is a formula of the array API standard. From it follow the loops of the fused executor,
the programs of JAX and the nodes of ONNX; nothing here is about any of them.
"""

import numpy as np

from gradtape.plugin import F, Op, hookimpl


def _kernel(xp, x, *, width=1.0):
    return xp.sqrt(x * x + width * width) - width


def _gradient(g, x, width):
    return g * x / F.sqrt(x * x + width * width)


softabs = Op(
    "gradtape-softabs::softabs",
    _kernel,
    gradients={"x": _gradient},
    infer=lambda x, width: (x.shape, x.dtype),
    batch="elementwise",
    floating=True,
    doc="Return the absolute value, rounded at 0: ``sqrt(x * x + width * width) - width``.",
)


@hookimpl
def gradtape_ops():
    return [softabs]


@hookimpl
def gradtape_samples():
    from gradtape.testing import Sample  # only tests need it

    return {
        softabs.name: [
            Sample(np.array([-1.5, 0.25, 2.0])),
            Sample(np.array([[0.5, -2.0, 1.0]]), width=0.5),
        ]
    }
