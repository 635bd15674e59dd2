"""The ledger of the search index. The indexes themselves are the database's own: see `services.search_index`."""

from django.db import models

from sessions_app.models.session import Session


class SearchBlock(models.Model):
    """A run of entries of one session that is in the index, whole. Blocks of a session follow each other without a gap.

    Its words stand in `search_words` by the entries' ids, its trigrams in `search_grams` by its own. Neither kind of id
    is ever given twice, so what is left in an index of rows that are gone finds nothing.
    """

    session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="search_blocks", db_index=False)
    first_index = models.PositiveIntegerField()
    last_index = models.PositiveIntegerField()
    capped = models.PositiveIntegerField(default=0)  # entries of it whose text goes on beyond what is indexed

    class Meta:
        constraints = [models.UniqueConstraint(fields=["session", "first_index"], name="search_block_place")]

    def __str__(self) -> str:
        return f"{self.first_index}–{self.last_index}"
