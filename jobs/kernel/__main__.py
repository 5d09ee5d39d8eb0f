"""``python -m plumbline.jobs.kernel`` compiles the kernel; with ``tokenizer``, only that part."""

import sys

from plumbline.jobs.kernel.counter import warm_up
from plumbline.jobs.kernel.tokenizer import tokenize

if sys.argv[1:] == ["tokenizer"]:
    tokenize("tea")
else:
    warm_up(everything=True)
