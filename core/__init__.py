"""The engine: tensors, ops, tapes, traces and modules. It knows no backend and no file format."""
