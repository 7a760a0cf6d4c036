"""Graph passes: find the attention of an ONNX model and replace each site by one ZyfaPrefillAttention node.

Entry points live in `pipeline` (fuse_model, inspect_model) and `model_file` (load, save).
"""
