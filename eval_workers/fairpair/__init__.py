"""FairPair (Dwivedi-Yu, 2024): do texts about two people differ more than by chance?"""
