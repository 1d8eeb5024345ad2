"""Random numbers: generators, and functions that share a global one."""

from __future__ import annotations

# the whole package before its parts: threads that start with different parts would deadlock
from ..plugins import ops  # noqa: F401
from ..plugins.ops.random.functions import bernoulli as bernoulli
from ..plugins.ops.random.functions import categorical as categorical
from ..plugins.ops.random.functions import choice as choice
from ..plugins.ops.random.functions import exponential as exponential
from ..plugins.ops.random.functions import gamma as gamma
from ..plugins.ops.random.functions import normal as normal
from ..plugins.ops.random.functions import permutation as permutation
from ..plugins.ops.random.functions import randint as randint
from ..plugins.ops.random.functions import set_seed as set_seed
from ..plugins.ops.random.functions import shuffle as shuffle
from ..plugins.ops.random.functions import truncated_normal as truncated_normal
from ..plugins.ops.random.functions import uniform as uniform
from ..plugins.ops.random.generator import Generator as Generator
from ..public import publish

publish(__name__)
