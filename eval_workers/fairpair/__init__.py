"""FairPair: counterfactual continuations and their sampling noise (Dwivedi-Yu, 2024)."""
