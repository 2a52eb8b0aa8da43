"""The buddy systems and Kingsley's buckets as specifications: offsets only, no tags, no links."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Node:
    """A block: where it is, its class, and the block it was split from."""

    offset: int
    class_: int
    parent: Node | None = None
    buddy: Node | None = None


@dataclass
class Buddies:
    """A buddy system: sizes by class; the right child's class is ``step`` below its parent's."""

    heap_bytes: int
    header: int
    sizes: list[int]
    step: int
    follow_smaller: bool = False
    lists: dict[int, list[Node]] = field(default_factory=dict)
    used: dict[int, Node] = field(default_factory=dict)

    def __post_init__(self) -> None:
        offset, self.top = 0, 0
        for class_ in reversed(range(len(self.sizes))):
            if (class_ > 0 or self.step == 1) and self.sizes[class_] <= self.heap_bytes - offset:
                self._push(Node(offset, class_))
                offset += self.sizes[class_]
                self.top = max(self.top, class_)

    def malloc(self, size: int) -> int | None:
        if not 0 < size <= self.sizes[self.top] - self.header:
            return None
        wanted = next(c for c, s in enumerate(self.sizes) if s >= size + self.header)
        found = next((c for c in range(wanted, self.top + 1) if self.lists.get(c)), None)
        if found is None:
            return None
        node = self.lists[found].pop()
        while node.class_ > max(wanted, self.step - 1):
            left = Node(node.offset, node.class_ - 1, node)
            right = Node(node.offset + self.sizes[left.class_], node.class_ - self.step, node)
            left.buddy, right.buddy = right, left
            goes_right = self.follow_smaller and right.class_ >= wanted
            node, other = (right, left) if goes_right else (left, right)
            self._push(other)
        self.used[node.offset + self.header] = node
        return node.offset + self.header

    def free(self, offset: int) -> None:
        node = self.used.pop(offset)
        while node.buddy is not None and any(node.buddy is other for other in self.lists.get(node.buddy.class_, ())):
            self.lists[node.buddy.class_] = [n for n in self.lists[node.buddy.class_] if n is not node.buddy]
            assert node.parent is not None
            node = node.parent
        self._push(node)

    def _push(self, node: Node) -> None:
        self.lists.setdefault(node.class_, []).append(node)


def binary(heap_bytes: int, word: int, minimum: int = 16, alignment: int = 8) -> Buddies:
    scale = word // 4
    return Buddies(heap_bytes, alignment * scale, [minimum * scale << k for k in range(24)], 1)


def fibonacci(heap_bytes: int, word: int, minimum: int = 16, alignment: int = 8, follow: int = 0) -> Buddies:
    scale = word // 4
    sizes = [minimum * scale] * 2
    while len(sizes) < 36:
        sizes.append(sizes[-1] + sizes[-2])
    return Buddies(heap_bytes, alignment * scale, sizes, 2, follow_smaller=not follow)


@dataclass
class Buckets:
    """Kingsley's allocator."""

    heap_bytes: int
    header: int
    minimum: int
    page: int
    top: int = 0
    lists: dict[int, list[int]] = field(default_factory=dict)
    used: dict[int, int] = field(default_factory=dict)

    def malloc(self, size: int) -> int | None:
        if not 0 < size <= (1 << self.heap_bytes.bit_length() - 1) - self.header:
            return None
        block = self.minimum
        while block < size + self.header:
            block *= 2
        if not self.lists.get(block):
            carved = max(block, self.page)
            if self.top + carved > self.heap_bytes:
                return None
            self.lists[block] = list(range(self.top, self.top + carved, block))[::-1]
            self.top += carved
        offset = self.lists[block].pop() + self.header
        self.used[offset] = block
        return offset

    def free(self, offset: int) -> None:
        self.lists[self.used.pop(offset)].append(offset - self.header)


def kingsley(heap_bytes: int, word: int, minimum: int = 16, alignment: int = 8, page: int = 1024) -> Buckets:
    scale = word // 4
    return Buckets(heap_bytes, alignment * scale, minimum * scale, page)
