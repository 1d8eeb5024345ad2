"""An op that gets a list of arrays says how it is called."""

import pytest

import gradtape as gt
from gradtape.plugin import F


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (
            lambda: F.concatenate([gt.ones(2), gt.ones(2)], axis=-1),
            r"call concatenate\(\*arrays, .*axis=0\) with arrays, one after another, not a list",
        ),
        (
            lambda: F.sin((gt.ones(2),)),
            r"call sin\(.*x.*\) with arrays, not a tuple",
        ),
    ],
)
def test_the_signature_is_shown(call, told):
    with pytest.raises(TypeError, match=told):
        call()
