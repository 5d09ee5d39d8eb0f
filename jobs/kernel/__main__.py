"""``python -m plumbline.jobs.kernel`` compiles the kernel; with ``tokenizer``, only that part."""

import sys

from plumbline.jobs.kernel.compiling import compile_tokenizer, warm_up

if sys.argv[1:] == ["tokenizer"]:
    compile_tokenizer()
else:
    warm_up(everything=True)
