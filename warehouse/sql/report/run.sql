-- grain: run_id
SELECT run_id, command, status, started_at, seconds, git_commit, config, packages, error
FROM run
ORDER BY started_at, run_id;
