"""``python -m plumbline.jobs.kernel`` compiles the kernel; with ``tokenizer``, only that part."""

import sys

from plumbline.jobs.kernel import tokenize, warm_up

if sys.argv[1:] == ["tokenizer"]:
    tokenize("tea")
else:
    warm_up(everything=True)
