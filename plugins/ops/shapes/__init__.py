"""Ops that make arrays and move their elements, under the headings of NumPy's manual.

``adjoints`` holds the ops of gradient rules that take a shape from another tensor.
"""
