"""Compile all of the kernel that is not compiled yet: ``python -m plumbline.jobs.kernel``."""

import sys

from plumbline.jobs.kernel.compiling import compile_tokenizer, warm_up

if sys.argv[1:] == ["tokenizer"]:
    compile_tokenizer()
else:
    warm_up(everything=True)
