"""Pictures and pages: a model or a graph as SVG, and a file as one page of HTML."""

# whole, before its submodules: two threads that import some of them would wait for each other
from .. import saving as saving
