"""Session files in: from paths, uploads and streams to complete sessions."""

from sessions_app.services.imports.runs import cancel_import, import_paths, request_upload, run_import

__all__ = ["cancel_import", "import_paths", "request_upload", "run_import"]
