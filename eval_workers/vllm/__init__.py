"""vLLM: processes that serve or score, in the interpreter that has it."""
