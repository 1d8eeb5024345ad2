"""The part of ``contract`` that a first op does not need: graphs and modules."""

from __future__ import annotations

from ..public import publish
from .graphs.graph import Graph as Graph
from .graphs.nodes import Node as Node
from .graphs.nodes import Read as Read
from .graphs.nodes import Symbol as Symbol
from .graphs.optimize import local_constants as local_constants
from .graphs.plain import argument_of as argument_of
from .graphs.plain import by_backend as by_backend
from .graphs.plain import compiling as compiling
from .graphs.plain import default as default
from .graphs.plain import kernel_of as kernel_of
from .graphs.plain import plain as plain
from .module.module import Module as Module
from .module.module import saved_classes as saved_classes

publish(__name__, __name__.replace("core.contract_later", "plugin"))
