"""Model backends, one file each; the only modules that import torch."""
