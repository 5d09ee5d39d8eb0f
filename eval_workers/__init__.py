"""Everything that touches a language model: benchmarks, backends, scoring, training."""
