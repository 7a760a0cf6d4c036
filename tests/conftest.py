"""Settings that must be in place before NumPy is loaded."""

import os

# The reference models multiply many small matrices: with two OpenBLAS threads on two busy cores they take
# three times as long (14 s against 4 s for four heads of 1,024 rows).
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
