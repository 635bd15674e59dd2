"""Sources, their records, and the entries made of them."""

from django.db import models
from django.db.models import Q

from sessions_app.models.ids import new_id
from sessions_app.models.session import Session


class SourceFile(models.Model):
    """One version of one source that was imported. Its frames, joined in order, are its bytes."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="source_files")
    path = models.CharField(max_length=1000)
    version = models.PositiveIntegerField(default=1)  # counts rewrites; a file that only grew keeps its version
    size = models.PositiveBigIntegerField(default=0)  # bytes stored
    mtime_ns = models.BigIntegerField(default=0)
    tail_hash = models.BinaryField(max_length=32, default=b"")  # sha256 of the last 64 kB stored
    content_hash = models.BinaryField(max_length=32, default=b"")  # sha256 of all bytes stored
    reader = models.CharField(max_length=40)
    reader_version = models.PositiveIntegerField(default=1)
    record_count = models.PositiveIntegerField(default=0)
    report = models.JSONField(default=dict)  # a ParseReport
    is_complete = models.BooleanField(default=False)  # False while, or after, an import that did not end
    imported_at = models.DateTimeField(auto_now=True)

    class Meta:
        indexes = [models.Index(fields=["path"], name="source_file_by_path")]

    def __str__(self) -> str:
        return self.path


class RecordFrame(models.Model):
    """A zstandard frame of consecutive whole records, about 256 kB before compression."""

    source_file = models.ForeignKey(SourceFile, on_delete=models.CASCADE, related_name="frames", db_index=False)
    offset = models.PositiveBigIntegerField()  # bytes from the start of the file
    length = models.PositiveIntegerField()  # bytes before compression
    data = models.BinaryField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["source_file", "offset"], name="frame_place")]

    def __str__(self) -> str:
        return f"{self.offset}+{self.length}"


class Record(models.Model):
    """One item of a source, found again by its place in the frames."""

    source_file = models.ForeignKey(SourceFile, on_delete=models.CASCADE, related_name="records", db_index=False)
    ordinal = models.PositiveIntegerField()  # 0, 1, 2 … within the source
    line = models.PositiveIntegerField()  # from 1; two records of a spliced line share it
    offset = models.PositiveBigIntegerField()
    length = models.PositiveIntegerField()
    kind = models.CharField(max_length=80)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["source_file", "ordinal"], name="record_place")]

    def __str__(self) -> str:
        return f"{self.line}: {self.kind}"


class Entry(models.Model):
    """One row of a canonical history. Rows are added and never changed, but for `off_branch`.

    `off_branch` says where the tree of the source has its live branch; a rewind that arrives later moves it.
    It is no part of the content hash.
    """

    session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="entries", db_index=False)
    index = models.PositiveIntegerField()
    source_id = models.CharField(max_length=200, blank=True)
    parent_source_id = models.CharField(max_length=200, blank=True)
    message_key = models.CharField(max_length=200, blank=True)
    role = models.CharField(max_length=10)
    kind = models.CharField(max_length=12)
    parts = models.TextField()  # JSON of engine.entries.Part
    annex = models.JSONField(default=dict)  # facts for display only: exit status, duration …; never sent
    call_id = models.CharField(max_length=200, blank=True)  # of the first call (kind `call`) or result (kind `result`)
    more_call_ids = models.JSONField(default=list)  # of the further ones, where a row holds several
    tokens = models.PositiveIntegerField(default=0)
    estimator_version = models.PositiveSmallIntegerField(null=True)  # of the estimator that counted `tokens`; none: the first
    prefix_tokens = models.PositiveBigIntegerField(default=0)  # sum of `tokens` of sendable entries before this one
    prefix_hash = models.BinaryField(max_length=32, default=b"")  # rolling hash up to and including this entry
    usage = models.JSONField(null=True)  # engine.entries.Usage, on the row that is billed for its message
    model = models.CharField(max_length=100, blank=True)
    timestamp = models.CharField(max_length=40, blank=True)  # as the source gave it
    off_branch = models.BooleanField(default=False)
    meta = models.BooleanField(default=False)
    synthetic_time = models.BooleanField(default=False)
    is_error = models.BooleanField(default=False)
    source_file = models.ForeignKey(SourceFile, null=True, on_delete=models.SET_NULL, related_name="+", db_index=False)
    record_ordinal = models.PositiveIntegerField(null=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["session", "index"], name="entry_place")]
        indexes = [
            models.Index(fields=["session", "call_id"], name="entry_by_call", condition=~Q(call_id="")),
            models.Index(fields=["session", "index"], name="entry_user_turns", condition=Q(role="user", kind="message")),
            models.Index(fields=["session", "index"], name="entry_measured", condition=Q(usage__isnull=False)),
            models.Index(fields=["session", "index"], name="entry_off_branch", condition=Q(off_branch=True)),
        ]

    def __str__(self) -> str:
        return f"{self.index} {self.role} {self.kind}"


class Blob(models.Model):
    """Bytes kept once, by their hash: images, and texts too long to stand in an entry's row."""

    sha256 = models.CharField(primary_key=True, max_length=64)
    media_type = models.CharField(max_length=100)
    size = models.PositiveBigIntegerField()  # bytes before compression
    width = models.PositiveIntegerField(default=0)
    height = models.PositiveIntegerField(default=0)
    compressed = models.BooleanField(default=False)  # zstandard
    data = models.BinaryField()

    def __str__(self) -> str:
        return self.sha256[:12]
