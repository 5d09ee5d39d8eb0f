"""Claims of UnStereoEval outside its tables, compared with its release."""
