"""What an audit keeps on disk: trained parameters for later audits, and its own progress, so that it can be resumed.

pieces
    A pytree of arrays as one folder, written whole or not at all, with a hash of its content.
fingerprint
    When two computations are the same.
trained
    Trained parameters, one row per sign vector.
progress
    Everything that one audit has computed so far.
"""

from jaxaudit.store.fingerprint import fingerprint as fingerprint
from jaxaudit.store.fingerprint import hash_arrays as hash_arrays
from jaxaudit.store.fingerprint import hash_loop as hash_loop
from jaxaudit.store.fingerprint import hash_program as hash_program
from jaxaudit.store.pieces import read_piece as read_piece
from jaxaudit.store.pieces import write_piece as write_piece
from jaxaudit.store.progress import Progress as Progress
from jaxaudit.store.trained import TrainedShelf as TrainedShelf
