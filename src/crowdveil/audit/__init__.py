"""Checks that need no trust in us: exact, byte for byte, from outside, and down to the floating-point grid."""

from crowdveil.audit.black_box import black_box
from crowdveil.audit.conformance import javascript_conforms, python_conforms, vector_of
from crowdveil.audit.exact import Exact, exact_audit, exact_delta
from crowdveil.audit.finding import Finding
from crowdveil.audit.floating_point import named_share, named_share_of_table, numpy_laplace
from crowdveil.audit.lower_bound import LowerBound
from crowdveil.audit.registry import audit_callable, audit_mechanism, audit_registry

__all__ = [
    "Exact",
    "Finding",
    "LowerBound",
    "audit_callable",
    "audit_mechanism",
    "audit_registry",
    "black_box",
    "exact_audit",
    "exact_delta",
    "javascript_conforms",
    "named_share",
    "named_share_of_table",
    "numpy_laplace",
    "python_conforms",
    "vector_of",
]
