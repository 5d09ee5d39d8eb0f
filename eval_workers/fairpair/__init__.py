"""FairPair: counterfactual continuations and their sampling noise (Dwivedi-Yu et al., 2024)."""
