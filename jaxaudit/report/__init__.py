"""Results and the report folder: JSON, evidence, Markdown, figures and one self-contained HTML page."""

from jaxaudit.report.results import AuditReport, MethodResult

__all__ = ["AuditReport", "MethodResult"]
