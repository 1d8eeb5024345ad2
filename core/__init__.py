"""The engine: tensors, ops, tapes, traces and modules, without backends or file formats."""
