# SPDX-License-Identifier: 0BSD
"""What programs from outside import of the checker, however it is divided inside: the arithmetic of a result."""

from wcet_probe.certificate.kernel.verify import CheckedBound, bound_digest, check_certificate, verify_result

__all__ = ["CheckedBound", "bound_digest", "check_certificate", "verify_result"]
