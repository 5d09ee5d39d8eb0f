-- grain: run_id
SELECT
    run_id, command, status, strftime(started_at, '%Y-%m-%d %H:%M:%S') AS started, seconds,
    git_commit, left(coalesce(git_commit, '–'), 12) AS "commit", config, packages, error
FROM run
ORDER BY started_at, run_id;
