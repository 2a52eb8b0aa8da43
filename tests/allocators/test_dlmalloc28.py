"""dlmalloc28: conformance, the model, the last trie, the checker against broken heaps."""

from .conformance import Conformance, Subject
from .dlmalloc28_model import Dlmalloc28


class TestDlmalloc28(Conformance):
    subject = Subject("dlmalloc28", model=Dlmalloc28)
