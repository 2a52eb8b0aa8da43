# SPDX-License-Identifier: 0BSD
"""Module certificates: what the words of an allocator are whenever an operation begins, and which facts that proves.

Read it where a result says that its facts are proved.
"""
