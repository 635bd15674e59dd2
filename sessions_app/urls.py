"""Addresses of all pages, nested by what they belong to."""

from django.urls import include, path

from sessions_app.api.docs import api_docs
from sessions_app.api.root import urlpatterns as api_urls
from sessions_app.views import (
    accounts,
    audit,
    breakers,
    compactions,
    drafts,
    events,
    exports,
    forks,
    goals,
    health,
    history,
    imports,
    memory,
    models,
    overrides,
    policies,
    raw,
    runners,
    search,
    sessions,
    styleguide,
    tokens,
    turns,
    users,
)

session_urls = [
    path("", history.session_detail, name="session-detail"),
    path("entries/", history.entry_window, name="session-entries"),
    path("entries/<int:index>/", history.entry_permalink, name="entry-detail"),
    path("entries/<int:index>/pin/", overrides.entry_decide, {"decision": "pin"}, name="entry-pin"),
    path("entries/<int:index>/unpin/", overrides.entry_decide, {"decision": "unpin"}, name="entry-unpin"),
    path("entries/<int:index>/exclude/", overrides.entry_decide, {"decision": "exclude"}, name="entry-exclude"),
    path("entries/<int:index>/include/", overrides.entry_decide, {"decision": "include"}, name="entry-include"),
    path("entries/<int:index>/raw/", raw.entry_raw, name="entry-raw"),
    path("entries/<int:index>/parts/", history.entry_parts, name="entry-parts"),
    path("entries/<int:index>/parts/<int:position>/text/", history.part_text, name="part-text"),
    path("entries/<int:index>/parts/<int:position>/image/", history.part_image, name="part-image"),
    path("children/<str:call_id>/", history.child_entries, name="session-children"),
    path("compact/", compactions.compaction_create, name="compaction-create"),
    path("panel/", compactions.compaction_panel, name="compaction-panel"),
    path("revert/", compactions.compaction_revert, name="compaction-revert"),
    path("breaker/", breakers.breaker_reset, name="breaker-reset"),
    path("model/", models.model_choose, name="session-model"),
    path("compactions/", compactions.compaction_list, name="compaction-list"),
    path("compactions/<uuid:compaction_id>/", compactions.compaction_detail, name="compaction-detail"),
    path("compactions/<uuid:compaction_id>/cancel/", compactions.compaction_cancel, name="compaction-cancel"),
    path("turns/", turns.turn_create, name="turn-create"),
    path("turns/<uuid:turn_id>/withdraw/", turns.turn_withdraw, name="turn-withdraw"),
    path("turns/<uuid:turn_id>/interrupt/", turns.turn_interrupt, name="turn-interrupt"),
    path("turns/<uuid:turn_id>/retry/", turns.turn_retry, name="turn-retry"),
    path("compactions/compare/", compactions.compaction_compare, name="compaction-compare"),
    path("fork/", forks.session_fork, name="session-fork"),
    path("goal/", goals.session_goal, name="session-goal"),
    path("compactions/<uuid:compaction_id>/draft/", drafts.draft_detail, name="draft-detail"),
    path("compactions/<uuid:compaction_id>/draft/commit/", drafts.draft_commit, name="draft-commit"),
    path("compactions/<uuid:compaction_id>/draft/discard/", drafts.draft_discard, name="draft-discard"),
    path("events/", events.session_events, name="session-events"),
    path("runner/", runners.session_bind, name="session-bind"),
    path("runner/decide/", runners.session_decide, name="session-decide"),
    path("policy/", policies.policy_session, name="policy-session"),
    path("raw/", raw.session_raw, name="session-raw"),
    path("export/", exports.session_export, name="session-export"),
    path("exports/", exports.session_exports, name="session-exports"),
    path("continuation/", exports.session_continuation, name="session-continuation"),
]

import_urls = [
    path("", imports.import_list, name="import-list"),
    path("<uuid:run_id>/", imports.import_detail, name="import-detail"),
    path("<uuid:run_id>/cancel/", imports.import_cancel, name="import-cancel"),
]

user_urls = [
    path("", users.user_list, name="user-list"),
    path("unlock/", users.lock_lift, name="lock-lift"),
    path("<int:user_id>/", users.user_detail, name="user-detail"),
    path("<int:user_id>/role/", users.user_role, name="user-role"),
    path("<int:user_id>/active/", users.user_switch, name="user-switch"),
    path("<int:user_id>/password/", users.user_reset, name="user-reset"),
]

runner_urls = [
    path("", runners.runner_list, name="runner-list"),
    path("<uuid:runner_id>/", runners.runner_detail, name="runner-detail"),
    path("<uuid:runner_id>/test/", runners.runner_test, name="runner-test"),
    path("<uuid:runner_id>/remove/", runners.runner_remove, name="runner-remove"),
]

audit_urls = [
    path("", audit.audit_list, name="audit-list"),
    path("newer/", audit.audit_newer, name="audit-newer"),
    path("export/", audit.audit_export, name="audit-export"),
    path("verify/", audit.audit_verify, name="audit-verify"),
    path("verify/stream/", audit.audit_verify_stream, name="audit-verify-stream"),
    path("<int:event_id>/", audit.audit_detail, name="audit-detail"),
]

urlpatterns = [
    path("", sessions.session_list, name="session-list"),
    path("sign-in/", accounts.sign_in, name="sign-in"),
    path("sign-out/", accounts.sign_out, name="sign-out"),
    path("password/", accounts.password_change, name="password-change"),
    path("users/", include(user_urls)),
    path("tokens/", tokens.token_list, name="token-list"),
    path("tokens/<uuid:token_id>/revoke/", tokens.token_revoke, name="token-revoke"),
    path("search/", search.search, name="search"),
    path("sessions/new/", turns.session_create, name="session-create"),
    path("sessions/<uuid:session_id>/", include(session_urls)),
    path("drafts/", drafts.draft_list, name="draft-list"),
    path("imports/", include(import_urls)),
    path("policies/", policies.policy_installation, name="policy-installation"),
    path("projects/<uuid:project_id>/policy/", policies.policy_project, name="policy-project"),
    path("projects/<uuid:project_id>/memory/", memory.memory_project, name="memory-project"),
    path("projects/<uuid:project_id>/memory/<uuid:fact_id>/forget/", memory.memory_forget, name="memory-forget"),
    path("projects/<uuid:project_id>/memory/repair/", memory.memory_repair, name="memory-repair"),
    path("runners/", include(runner_urls)),
    path("audit/", include(audit_urls)),
    path("styleguide/", styleguide.styleguide, name="styleguide"),
    path("v1/docs", api_docs, name="api-docs"),
    path("v1/", include((api_urls, "api"))),
    path("healthz", health.health, name="health"),
    path("readyz", health.ready, name="ready"),
    path("livez", health.live, name="live"),
]
