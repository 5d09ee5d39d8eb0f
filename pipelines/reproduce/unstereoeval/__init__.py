"""What UnStereoEval says outside its tables, compared with its release."""
