"""Networks: ops, tensors and the readers that make them."""
