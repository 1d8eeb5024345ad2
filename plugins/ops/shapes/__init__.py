"""Ops that make arrays and move their elements, by the headings of NumPy's manual.

``adjoints`` holds what gradient rules use to go back: ops that take a shape from another tensor.
"""
